// SPDX-License-Identifier: Apache-2.0

package unmetered

import (
	_ "unsafe" // for go:linkname

	"k8s.io/client-go/util/workqueue"
)

// init is before that of k8s.io/component-base/metrics/prometheus/workqueue, which would have its metrics be those of
// all queues: of packages that may be next, Go initializes the one first whose path is. The first to set them is the
// only one, and what is set here is what there was: nothing.
func init() { workqueue.SetProvider(globalMetricsProvider) }

// globalMetricsProvider is the library's own. Only a provider of that very type has it leave the waking out.
//
//go:linkname globalMetricsProvider k8s.io/client-go/util/workqueue.globalMetricsProvider
var globalMetricsProvider workqueue.MetricsProvider
