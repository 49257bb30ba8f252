// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// Controllers are all, in the order in which the server looks for their objects when it starts.
func Controllers() []ondemand.Controller {
	return []ondemand.Controller{
		deployments(),
		replicaSets(),
		statefulSets(),
		daemonSets(),
		replicationControllers(),
		jobs(),
		cronJobs(),
		finishedJobs(),
		endpointSlices(),
		endpoints(),
		mirroredEndpoints(),
		taintEviction(),
		disruptionBudgets(),
		podAutoscalers(),
		garbageCollector(), // looks through all kinds
	}
}

// code is where Kubernetes keeps its controllers.
const code = "k8s.io/kubernetes/pkg/controller/"

// workers is how many objects a controller works on at the same time.
const workers = 2

// first has a controller start with the first object of a kind.
func first(gv schema.GroupVersion, resource string) ondemand.Start {
	return ondemand.Start{Kind: gv.WithResource(resource)}
}
