// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/schemes"
)

// Ensure creates an object for the server itself unless it is there, through the same rules as everybody's.
func (s Stores) Ensure(ctx context.Context, types *schemes.Schemes, plural, namespace string,
	obj runtime.Object) error {
	meta := obj.(metav1.Object)
	store := s[plural]
	ctx = store.Within(ctx, namespace)
	if _, err := store.Get(ctx, meta.GetName(), &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	types.Default(obj)
	_, err := store.Create(ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %s: %w", store.Kind.Singular, meta.GetName(), err)
	}
	return nil
}
