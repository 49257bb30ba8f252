// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	"k8s.io/kubernetes/pkg/controller/endpoint"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// endpoints keeps the Endpoints of Services that select pods, for clients that do not know EndpointSlices.
func endpoints() ondemand.Controller {
	return ondemand.Controller{
		Name:   "endpoint-controller",
		Starts: []ondemand.Start{selectingService()},
		Code:   code + "endpoint",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core := k.Informers.Core().V1()
			c := endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), k.Client, 0)
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
