// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// present collects what there is now, at each scrape.
type present struct {
	metrics.BaseStableCollector
	look                   func() Now
	node, pods, containers *metrics.Desc
	claims                 []claimGauge
}

func newPresent(look func() Now) *present {
	return &present{
		look: look,
		node: metrics.NewDesc("kubelet_node_name", "The node's name. The count is always 1.", []string{"node"}, nil,
			metrics.ALPHA, ""),
		pods: metrics.NewDesc("kubelet_running_pods", "Number of pods that have a running pod sandbox", nil, nil,
			metrics.ALPHA, ""),
		containers: metrics.NewDesc("kubelet_running_containers", "Number of containers by state",
			[]string{"container_state"}, nil, metrics.ALPHA, ""),
		claims: claimGauges(),
	}
}

// DescribeWithStability is part of [metrics.StableCollector].
func (p *present) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- p.node
	ch <- p.pods
	ch <- p.containers
	for _, g := range p.claims {
		ch <- g.desc
	}
}

// CollectWithStability is part of [metrics.StableCollector].
func (p *present) CollectWithStability(ch chan<- metrics.Metric) {
	now := p.look()
	if now.Node != "" {
		ch <- metrics.NewLazyConstMetric(p.node, metrics.GaugeValue, 1, now.Node)
	}
	ch <- metrics.NewLazyConstMetric(p.pods, metrics.GaugeValue, float64(now.Pods))
	for _, state := range []string{"created", "running", "exited", "unknown"} {
		ch <- metrics.NewLazyConstMetric(p.containers, metrics.GaugeValue, float64(now.Containers[state]), state)
	}
	collectClaims(ch, p.claims, now.Claims)
}
