// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// present collects what runs now, at each scrape.
type present struct {
	metrics.BaseStableCollector
	look             func() Now
	pods, containers *metrics.Desc
}

func newPresent(look func() Now) *present {
	return &present{
		look: look,
		pods: metrics.NewDesc("kubelet_running_pods", "Number of pods that have a running pod sandbox", nil, nil,
			metrics.ALPHA, ""),
		containers: metrics.NewDesc("kubelet_running_containers", "Number of containers by state",
			[]string{"container_state"}, nil, metrics.ALPHA, ""),
	}
}

// DescribeWithStability is part of [metrics.StableCollector].
func (p *present) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- p.pods
	ch <- p.containers
}

// CollectWithStability is part of [metrics.StableCollector].
func (p *present) CollectWithStability(ch chan<- metrics.Metric) {
	now := p.look()
	ch <- metrics.NewLazyConstMetric(p.pods, metrics.GaugeValue, float64(now.Pods))
	for _, state := range []string{"created", "running", "exited", "unknown"} {
		ch <- metrics.NewLazyConstMetric(p.containers, metrics.GaugeValue, float64(now.Containers[state]), state)
	}
}
