// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// mirrored is Kubernetes' default of how many addresses of a subset are mirrored.
const mirrored = 1000

// mirroredEndpoints keeps EndpointSlices of the Endpoints that people write for Services without a selector.
func mirroredEndpoints() ondemand.Controller {
	return ondemand.Controller{
		Name:   "endpointslicemirroring-controller",
		Starts: []ondemand.Start{first(corev1.SchemeGroupVersion, "endpoints")},
		Code:   code + "endpointslicemirroring",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core := k.Informers.Core().V1()
			c := endpointslicemirroring.NewController(ctx, core.Endpoints(),
				k.Informers.Discovery().V1().EndpointSlices(), core.Services(), mirrored, k.Client, 0)
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
