// SPDX-License-Identifier: Apache-2.0

package kernellog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzOutOfMemory: whatever there is between the kernel's words, what is made of it is bounded, those who had most are
// first, and it is told by the kernel's own number who was killed, whatever that one has called itself (RS-07).
func FuzzOutOfMemory(f *testing.F) {
	for _, text := range []string{report, report[300:], "6,1,-7,-;oom-kill:", "6;x", "", ";", "6,1,99999999999999999999,-;x\n y",
		"6,1,1,-;[  pid  ] rss name\n6,1,1,-;[ 1] 5\n6,1,1,-;[ 2] -5 x\n6,1,1,-;[3 7 y\n6,1,1,-;[] 1 z\n6,1,1,-;[ -4] 1099511627776 z",
		"6,1,1,-;[  pid  ] name rss\n6,1,1,-;[ 1] 5 x", "6,1,1,-;[  pid  ] rss rss name name\n6,1,1,-;[ 1] 5 x"} {
		f.Add(text, "x", 7)
	}
	f.Add("6,1,1,-;[  pid  ] rss name\n6,2,2,-;[1]\n6,2,2,-;[1] 9999999999999999999 a\n6,3,3,-;oom-kill:task_memcg=/,task=,pid=1", "", 1)
	f.Add(report, "a,pid=1,uid=0", 7)
	f.Add(report, "a,task=b", -1)
	f.Fuzz(func(t *testing.T, text, name string, pid int) {
		all := messages(text)
		for _, m := range all {
			if strings.Contains(m.Text, "\n") || !strings.Contains(text, m.Text) {
				t.Errorf("%q has the message %q", text, m.Text)
			}
		}
		kills := OutOfMemory(all, 4096)
		if len(kills) > len(all) {
			t.Errorf("%d are killed by %d messages", len(kills), len(all))
		}
		for _, k := range kills {
			less := func(a, b Process) int { return int(min(max(b.Bytes-a.Bytes, -1), 1)) }
			negative := slices.ContainsFunc(k.Processes, func(p Process) bool { return p.Bytes < 0 })
			if k.Group == "" || negative || len(k.Processes) > mostProcesses || !slices.IsSortedFunc(k.Processes, less) {
				t.Errorf("%+v", k)
			}
		}
		line := fmt.Sprintf("oom-kill:constraint=X,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/k,task_memcg=/k/pod,task=%s,pid=%d,uid=0", name, pid)
		got := OutOfMemory([]Message{{time.Second, line}}, 4096)
		if len(got) != 1 || got[0].Group != "/k/pod" || got[0].Killed != (Process{PID: pid, Name: name}) {
			t.Errorf("%q: %+v", line, got)
		}
	})
}
