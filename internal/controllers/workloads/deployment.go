// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/kubernetes/pkg/controller/deployment"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// deployments keeps the ReplicaSets of Deployments.
func deployments() ondemand.Controller {
	return ondemand.Controller{
		Name:   "deployment-controller",
		Starts: []ondemand.Start{first(appsv1.SchemeGroupVersion, "deployments")},
		Code:   code + "deployment",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			apps := k.Informers.Apps().V1()
			c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(),
				k.Informers.Core().V1().Pods(), k.Client)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
