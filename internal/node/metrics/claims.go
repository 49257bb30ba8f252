// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"k8s.io/component-base/metrics"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// claimGauge is one of the figures of a claim's volume.
type claimGauge struct {
	desc *metrics.Desc
	of   func(*statsapi.FsStats) *uint64
}

// claimGauges are the kubelet's (its collectors/volume_stats.go): alerts on volumes that fill up read them, and
// autoscalers of claims. Their labels name the claim, not the pod, so that their number is that of the claims in use.
func claimGauges() []claimGauge {
	gauge := func(name, help string, of func(*statsapi.FsStats) *uint64) claimGauge {
		return claimGauge{metrics.NewDesc("kubelet_volume_stats_"+name, help,
			[]string{"namespace", "persistentvolumeclaim"}, nil, metrics.ALPHA, ""), of}
	}
	return []claimGauge{
		gauge("capacity_bytes", "Capacity in bytes of the volume",
			func(f *statsapi.FsStats) *uint64 { return f.CapacityBytes }),
		gauge("available_bytes", "Number of available bytes in the volume",
			func(f *statsapi.FsStats) *uint64 { return f.AvailableBytes }),
		gauge("used_bytes", "Number of used bytes in the volume",
			func(f *statsapi.FsStats) *uint64 { return f.UsedBytes }),
		gauge("inodes", "Maximum number of inodes in the volume",
			func(f *statsapi.FsStats) *uint64 { return f.Inodes }),
		gauge("inodes_free", "Number of free inodes in the volume",
			func(f *statsapi.FsStats) *uint64 { return f.InodesFree }),
		gauge("inodes_used", "Number of used inodes in the volume",
			func(f *statsapi.FsStats) *uint64 { return f.InodesUsed }),
	}
}

// collectClaims gives each claim once, with the figures of the first pod that has it: two series with the same labels
// would fail the whole scrape. What is not known is left out.
func collectClaims(ch chan<- metrics.Metric, gauges []claimGauge, claims []statsapi.VolumeStats) {
	done := map[statsapi.PVCReference]bool{}
	for i := range claims {
		c := &claims[i]
		if c.PVCRef == nil || done[*c.PVCRef] {
			continue
		}
		done[*c.PVCRef] = true
		for _, g := range gauges {
			if v := g.of(&c.FsStats); v != nil {
				ch <- metrics.NewLazyConstMetric(g.desc, metrics.GaugeValue, float64(*v), c.PVCRef.Namespace,
					c.PVCRef.Name)
			}
		}
	}
}
