// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"testing"
)

// RS-07: a server that starts again by itself does not end pods, or write them back, because it was once asked to.
func TestWithoutOnce(t *testing.T) {
	args := []string{"wherry", "server", "--data-dir", "/d", "--forget", "--adopt=true", "--node-name=adopt"}
	if got := withoutOnce(args); !slices.Equal(got, []string{"wherry", "server", "--data-dir", "/d", "--node-name=adopt"}) {
		t.Errorf("%q", got)
	}
	if len(args) != 7 || args[4] != "--forget" {
		t.Errorf("the arguments themselves were changed: %q", args)
	}
}
