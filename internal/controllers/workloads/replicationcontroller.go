// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controller/replication"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// replicationControllers keeps the pods of ReplicationControllers. The work is done by the code of ReplicaSets.
func replicationControllers() ondemand.Controller {
	return ondemand.Controller{
		Name:   "replication-controller",
		Starts: []ondemand.Start{first(corev1.SchemeGroupVersion, "replicationcontrollers")},
		Code:   code + "replicaset",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core := k.Informers.Core().V1()
			c := replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), k.Client,
				replication.BurstReplicas)
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
