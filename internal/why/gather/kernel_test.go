// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"reflect"
	"testing"

	"github.com/wherryproject/wherry/internal/kernellog"
	"github.com/wherryproject/wherry/internal/why"
)

// DA-11: of what the kernel says of memory that ran out, a container's own is taken, by its ID.
func TestKillsOf(t *testing.T) {
	worker, cache := kernellog.Process{PID: 7, Name: "worker", Bytes: 50 << 20},
		kernellog.Process{PID: 5, Name: "cache", Bytes: 12 << 20}
	kills := []kernellog.Kill{{Group: "/pod/bbb", Killed: cache},
		{Group: "/pod/aaa", Killed: worker, Processes: []kernellog.Process{worker, cache}}}
	want := []why.Kill{{Container: "aaa", Killed: why.MemoryOf{PID: 7, Name: "worker", Bytes: 50 << 20},
		Others: []why.MemoryOf{{PID: 5, Name: "cache", Bytes: 12 << 20}}}}
	if got := killsOf(kills, "aaa"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := killsOf(kills, ""); got != nil {
		t.Errorf("of a container without an ID: %+v", got)
	}
}
