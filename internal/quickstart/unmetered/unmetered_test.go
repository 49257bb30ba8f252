// SPDX-License-Identifier: Apache-2.0

package unmetered_test

import (
	"runtime"
	"strings"
	"testing"

	"k8s.io/client-go/util/workqueue"

	_ "github.com/wherryproject/wherry/internal/quickstart/unmetered"
	// What the API server's library links.
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

// A queue with a name has no goroutine that wakes for the sake of metrics.
func TestQueuesAreUnmetered(t *testing.T) {
	q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "named"})
	defer q.ShutDown()
	all := make([]byte, 1<<20)
	if all = all[:runtime.Stack(all, true)]; strings.Contains(string(all), "updateUnfinishedWorkLoop") {
		t.Errorf("the queue has a goroutine for its metrics:\n%s", all)
	}
}
