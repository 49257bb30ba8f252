// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// finishedJobs deletes Jobs that have ended when their ttlSecondsAfterFinished are over.
func finishedJobs() ondemand.Controller {
	start := first(batchv1.SchemeGroupVersion, "jobs")
	start.If = func(_ schema.GroupResource, obj runtime.Object) bool {
		j, ok := obj.(*batchv1.Job)
		return !ok || j.Spec.TTLSecondsAfterFinished != nil // another type has to be looked at by the controller
	}
	return ondemand.Controller{
		Name:   "ttl-after-finished-controller",
		Starts: []ondemand.Start{start},
		Code:   code + "ttlafterfinished",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			c := ttlafterfinished.New(ctx, k.Informers.Batch().V1().Jobs(), k.Client)
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
