// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
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
				k.Informers.Policy().V1().PodDisruptionBudgets(), newNoReplication(k.Client), apps.ReplicaSets(),
				apps.Deployments(), apps.StatefulSets(), k.Client, mapper, sizes, k.Client.Discovery())
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}

// noReplication is an informer of ReplicationControllers while the API server has none: it knows of none. An ordinary
// one would ask for ever, and the controller wait for it.
type noReplication struct{ cache.SharedIndexInformer }

var _ coreinformers.ReplicationControllerInformer = noReplication{}

func newNoReplication(client kubernetes.Interface) noReplication {
	return noReplication{coreinformers.NewReplicationControllerInformer(client, "", 0, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

// HasSynced implements cache.SharedIndexInformer.
func (noReplication) HasSynced() bool { return true }

// Informer implements coreinformers.ReplicationControllerInformer.
func (n noReplication) Informer() cache.SharedIndexInformer { return n }

// Lister implements coreinformers.ReplicationControllerInformer.
func (n noReplication) Lister() corelisters.ReplicationControllerLister {
	return corelisters.NewReplicationControllerLister(n.GetIndexer())
}
