// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"context"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/firsts"
)

// Controller is one row of the list of controllers.
type Controller struct {
	// Name is what it is called in logs and metrics, and the user that it is: system:controller:<Name>.
	Name string
	// Starts are what it is started by.
	Starts []Start
	// Code is the import path below which its own functions are: by it a panic that does not say whose it is is traced
	// to it.
	Code string
	// New makes it. It asks the kit's informers for what it needs, which are started when it returns. The function that
	// it returns is called when they are filled, and works until ctx is done.
	New func(ctx context.Context, k *Kit) (run func(context.Context), err error)
}

// Start is what a controller is started by: an object of a kind.
type Start struct {
	Kind schema.GroupVersionResource                     // zero: any kind
	If   func(schema.GroupResource, runtime.Object) bool // nil: every object counts
	// There reports whether there is such an object already; nil: any of the kind will do.
	There func(context.Context, Looking) (bool, error)
}

// Looking is what one looks for objects with.
type Looking struct {
	Client   kubernetes.Interface
	Metadata metadata.Interface
}

// Any reports whether a kind has an object.
func (l Looking) Any(ctx context.Context, kind schema.GroupVersionResource) (bool, error) {
	list, err := l.Metadata.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return false, nil // the kind itself is not served
	}
	return err == nil && len(list.Items) > 0, err
}

// Kit is what a controller is made with.
type Kit struct {
	Client    kubernetes.Interface
	Config    *rest.Config // of the same user
	Informers informers.SharedInformerFactory
	Firsts    *firsts.Board
	Log       *slog.Logger
}
