// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// NamespacesOf reads namespaces, for a kind of Kubernetes' own whose rules ask for the labels of one: o is what
// Kind.Foreign was called with. It can do nothing else that its type promises.
func NamespacesOf(o generic.RESTOptionsGetter) typedv1.NamespaceInterface {
	g, _ := o.(getter)
	return namespaces{backend: g.backend}
}

type namespaces struct {
	typedv1.NamespaceInterface
	backend *Backend
}

// Get implements typedv1.NamespaceInterface.
func (n namespaces) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	if n.backend == nil || n.backend.Namespace == nil {
		return nil, errors.New("there are no namespaces to be read")
	}
	return n.backend.Namespace(ctx, name)
}
