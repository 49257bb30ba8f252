// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/statefulset"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// statefulSets keeps the pods of StatefulSets, in order. Claims are not served yet: to make one fails, which an event
// tells.
func statefulSets() ondemand.Controller {
	return ondemand.Controller{
		Name:   "statefulset-controller",
		Starts: []ondemand.Start{first(appsv1.SchemeGroupVersion, "statefulsets")},
		Code:   code + "statefulset",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core, apps := k.Informers.Core().V1(), k.Informers.Apps().V1()
			c := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(),
				newNoClaims(k.Client), apps.ControllerRevisions(), k.Client)
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}

// noClaims is an informer of claims while the API server has none: it knows of none, and that is all there is to know.
// An ordinary one would ask for ever.
type noClaims struct{ cache.SharedIndexInformer }

var _ coreinformers.PersistentVolumeClaimInformer = noClaims{}

func newNoClaims(client kubernetes.Interface) noClaims {
	return noClaims{coreinformers.NewPersistentVolumeClaimInformer(client, "", 0, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

// HasSynced implements cache.SharedIndexInformer.
func (noClaims) HasSynced() bool { return true }

// Informer implements coreinformers.PersistentVolumeClaimInformer.
func (n noClaims) Informer() cache.SharedIndexInformer { return n }

// Lister implements coreinformers.PersistentVolumeClaimInformer.
func (n noClaims) Lister() corelisters.PersistentVolumeClaimLister {
	return corelisters.NewPersistentVolumeClaimLister(n.GetIndexer())
}
