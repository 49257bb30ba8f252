// SPDX-License-Identifier: Apache-2.0

package table

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	cpuDoc    = "Processors used, on average over the window."
	memoryDoc = "Memory that is in use and cannot be reclaimed."
	windowDoc = "How long the average is over."
)

func podMetricsPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("CPU", cpuDoc), text("Memory", memoryDoc), text("Window", windowDoc)),
		Row: rowOf(func(m *metricsv1beta1.PodMetrics, _ time.Time) []any {
			var cpu, memory resource.Quantity
			for _, c := range m.Containers {
				cpu.Add(c.Usage[corev1.ResourceCPU])
				memory.Add(c.Usage[corev1.ResourceMemory])
			}
			return []any{m.Name, cpu.String(), memory.String(), m.Window.Duration.String()}
		}),
	}
}

func nodeMetricsPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("CPU", cpuDoc), text("Memory", memoryDoc), text("Window", windowDoc)),
		Row: rowOf(func(m *metricsv1beta1.NodeMetrics, _ time.Time) []any {
			return []any{m.Name, m.Usage.Cpu().String(), m.Usage.Memory().String(), m.Window.Duration.String()}
		}),
	}
}
