// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// Of Kubernetes' defaults only how often it looks is another: figures of the same machine cost little and are of now.
const (
	scalePeriod  = 5 * time.Second
	scaleDown    = 5 * time.Minute
	tolerance    = 0.1
	cpuStarts    = 5 * time.Minute
	readinessDue = 30 * time.Second
)

// podAutoscalers sizes workloads by what their pods use.
func podAutoscalers() ondemand.Controller {
	return ondemand.Controller{
		Name:   "horizontal-pod-autoscaler",
		Starts: []ondemand.Start{first(autoscalingv2.SchemeGroupVersion, "horizontalpodautoscalers")},
		Code:   code + "podautoscaler",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			mapper, sizes, err := scales(k)
			if err != nil {
				return nil, err
			}
			figures, err := resourceclient.NewForConfig(k.Config)
			if err != nil {
				return nil, err
			}
			external, err := external_metrics.NewForConfig(k.Config)
			if err != nil {
				return nil, err
			}
			versions := custom_metrics.NewAvailableAPIsGetter(k.Client.Discovery())
			client := metrics.NewRESTMetricsClient(figures, custom_metrics.NewForConfig(k.Config, mapper, versions),
				external)
			c := podautoscaler.NewHorizontalController(ctx, k.Client.CoreV1(), sizes, k.Client.AutoscalingV2(), mapper,
				client, k.Informers.Autoscaling().V2().HorizontalPodAutoscalers(), k.Informers.Core().V1().Pods(),
				scalePeriod, scaleDown, tolerance, cpuStarts, readinessDue)
			return func(ctx context.Context) {
				go custom_metrics.PeriodicallyInvalidate(versions, scalePeriod, ctx.Done())
				c.Run(ctx, workers)
			}, nil
		},
	}
}
