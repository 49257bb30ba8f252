// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/kubernetes/pkg/controller/statefulset"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// statefulSets keeps the pods of StatefulSets, in order, and makes their claims.
func statefulSets() ondemand.Controller {
	return ondemand.Controller{
		Name:   "statefulset-controller",
		Starts: []ondemand.Start{first(appsv1.SchemeGroupVersion, "statefulsets")},
		Code:   code + "statefulset",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core, apps := k.Informers.Core().V1(), k.Informers.Apps().V1()
			c := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(),
				core.PersistentVolumeClaims(), apps.ControllerRevisions(), k.Client)
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
