// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/firsts"
)

// Controller is one row of the list of controllers.
type Controller struct {
	// Name is what it is called in logs and metrics, and the user that it is: system:controller:<Name>.
	Name string
	// Kinds start it with their first object.
	Kinds []schema.GroupVersionResource
	// Owned has it started, too, with the first object that is for the garbage collector (firsts.Collectable).
	Owned bool
	// Code is the import path below which its own functions are: by it a panic that does not say whose it is is traced
	// to it.
	Code string
	// New makes it. It asks the kit's informers for what it needs, which are started when it returns. The function that it
	// returns is called when they are filled, and works until ctx is done.
	New func(ctx context.Context, k *Kit) (run func(context.Context), err error)
}

// Kit is what a controller is made with.
type Kit struct {
	Client    kubernetes.Interface
	Config    *rest.Config // of the same user
	Informers informers.SharedInformerFactory
	Firsts    *firsts.Board
}
