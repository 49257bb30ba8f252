// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/kubernetes/pkg/controller/job"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// jobs keeps the pods of Jobs until they are complete.
func jobs() ondemand.Controller {
	return ondemand.Controller{
		Name:   "job-controller",
		Starts: []ondemand.Start{first(batchv1.SchemeGroupVersion, "jobs")},
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
