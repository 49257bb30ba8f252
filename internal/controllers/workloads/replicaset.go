// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/kubernetes/pkg/controller/replicaset"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// replicaSets keeps the pods of ReplicaSets.
func replicaSets() ondemand.Controller {
	return ondemand.Controller{
		Name: "replicaset-controller",
		Starts: []ondemand.Start{
			first(appsv1.SchemeGroupVersion, "replicasets"),
			first(appsv1.SchemeGroupVersion, "deployments"), // whose ReplicaSet comes at once
		},
		Code: code + "replicaset",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			c := replicaset.NewReplicaSetController(ctx, k.Informers.Apps().V1().ReplicaSets(),
				k.Informers.Core().V1().Pods(), k.Client, replicaset.BurstReplicas)
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
