// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// TestGetOfImpossibleNames: a name that nothing can have is not found, as any other that nothing has. Admission asks
// with names that come from pods, and answered with an internal error.
func TestGetOfImpossibleNames(t *testing.T) {
	// without a store: it is not asked
	r := &registry.REST{Kind: &registry.Kind{GV: nodev1.SchemeGroupVersion, Plural: "runtimeclasses"}}
	for _, name := range []string{"a/b", "..", ".", "100%"} {
		if _, err := registry.Get[corev1.Pod](t.Context(), r, "", name); !apierrors.IsNotFound(err) {
			t.Errorf("%q: want not found, got %v", name, err)
		}
	}
}
