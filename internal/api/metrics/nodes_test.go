// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
)

// TestNodeUsageForgets: nothing stays in memory of nodes that pods name and nobody has.
func TestNodeUsageForgets(t *testing.T) {
	u := newNodeUsage(func(context.Context, string) (*url.URL, http.RoundTripper, error) {
		return nil, nil, errors.New("not registered")
	})
	rates, errs := u.of(t.Context(), []string{"a", "b", "c"})
	if len(rates) != 0 || len(errs) != 3 || len(u.nodes) != 0 {
		t.Errorf("%v, %v; remembered: %v", rates, errs, u.nodes)
	}
}
