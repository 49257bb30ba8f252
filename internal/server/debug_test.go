// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/node/cgroup"
)

// TestDebugFlags proves how EC-19's cap and DC-13's allow-list are given, and that what is no quantity or pattern is refused with
// the flag's name.
func TestDebugFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		cap  cgroup.Cap
		err  string
	}{
		{"EC-19 none", Options{}, cgroup.Cap{}, ""},
		{"EC-19 both", Options{DebugCPULimit: "500m", DebugMemoryLimit: "256Mi"}, cgroup.Cap{MilliCPU: 500, Memory: 256 << 20}, ""},
		{"EC-19 processes", Options{DebugMaxPIDs: 100}, cgroup.Cap{PIDs: 100}, ""},
		{"EC-19 no limit of processes", Options{DebugMaxPIDs: -1}, cgroup.Cap{}, ""},
		{"EC-19 no number of processes", Options{DebugMaxPIDs: -2}, cgroup.Cap{}, "--debug-max-pids: -2"},
		{"EC-19 no quantity", Options{DebugCPULimit: "half"}, cgroup.Cap{}, `--debug-cpu-limit: "half" is not a quantity above 0`},
		{"EC-19 nothing", Options{DebugMemoryLimit: "0"}, cgroup.Cap{}, `--debug-memory-limit: "0" is not a quantity above 0`},
		{"EC-19 too little", Options{DebugMemoryLimit: "1Mi"}, cgroup.Cap{}, "--debug-memory-limit: 1Mi is too little"},
		{"DC-13 patterns", Options{DebugImageAllow: []string{"wherry.dev/toolbox*", "a/**"}}, cgroup.Cap{}, ""},
		{"DC-13 no pattern", Options{DebugImageAllow: []string{"a["}}, cgroup.Cap{}, "--debug-image-allow: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.o.validateDebug()
			switch {
			case c.err == "" && err != nil:
				t.Error(err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("got %v, want %q", err, c.err)
			case c.err == "":
				if got, _ := c.o.debugCap(); got != c.cap {
					t.Errorf("got %+v, want %+v", got, c.cap)
				}
			}
		})
	}
}
