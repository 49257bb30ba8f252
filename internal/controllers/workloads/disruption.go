// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/kubernetes/pkg/controller/disruption"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// disruptionBudgets counts how many pods of a PodDisruptionBudget may be away; the API server refuses evictions by it.
func disruptionBudgets() ondemand.Controller {
	return ondemand.Controller{
		Name:   "disruption-controller",
		Starts: []ondemand.Start{first(policyv1.SchemeGroupVersion, "poddisruptionbudgets")},
		Code:   code + "disruption",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			mapper, sizes, err := scales(k)
			if err != nil {
				return nil, err
			}
			core, apps := k.Informers.Core().V1(), k.Informers.Apps().V1()
			c := disruption.NewDisruptionController(ctx, core.Pods(),
				k.Informers.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(), apps.ReplicaSets(),
				apps.Deployments(), apps.StatefulSets(), k.Client, mapper, sizes, k.Client.Discovery())
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
