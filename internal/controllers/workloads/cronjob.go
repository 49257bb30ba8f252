// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/kubernetes/pkg/controller/cronjob"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// cronJobs makes the Jobs of CronJobs when it is their time.
func cronJobs() ondemand.Controller {
	return ondemand.Controller{
		Name:   "cronjob-controller",
		Starts: []ondemand.Start{first(batchv1.SchemeGroupVersion, "cronjobs")},
		Code:   code + "cronjob",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			batch := k.Informers.Batch().V1()
			c, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), k.Client)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
