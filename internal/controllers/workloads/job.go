// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controller/job"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// trackedPod is a pod that stays until it has been counted for its Job, which may be gone: only the Jobs' controller
// lets it go.
func trackedPod() ondemand.Start {
	tracked := func(p metav1.Object) bool { return slices.Contains(p.GetFinalizers(), batchv1.JobTrackingFinalizer) }
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	return ondemand.Start{
		Kind: pods,
		If: func(_ schema.GroupResource, obj runtime.Object) bool {
			p, ok := obj.(metav1.Object)
			return !ok || tracked(p)
		},
		There: func(ctx context.Context, l ondemand.Looking) (bool, error) {
			list, err := l.Metadata.Resource(pods).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			return slices.ContainsFunc(list.Items, func(p metav1.PartialObjectMetadata) bool { return tracked(&p) }),
				nil
		},
	}
}

// jobs keeps the pods of Jobs until they are complete.
func jobs() ondemand.Controller {
	return ondemand.Controller{
		Name:   "job-controller",
		Starts: []ondemand.Start{first(batchv1.SchemeGroupVersion, "jobs"), trackedPod()},
		Code:   code + "job",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			// The last two are of Workloads, a feature that is off.
			c, err := job.NewController(ctx, k.Client, k.Informers.Core().V1().Pods(), k.Informers.Batch().V1().Jobs(),
				nil, nil)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
