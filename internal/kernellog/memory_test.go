// SPDX-License-Identifier: Apache-2.0

package kernellog

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const report = `6,1,100,-;busybox invoked oom-killer: gfp_mask=0x500cc2(GFP_HIGHUSER|__GFP_ACCOUNT), order=0, oom_score_adj=999
6,2,101,-;Tasks state (memory values in pages):
6,3,102,-;[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
6,4,103,-;[  22207] 65535 22207      248      137        0      137         0    36864        0             0 pause
6,5,104,-;[   5758]     0  5758      567      128        0      128         0    36864        0           999 my worker
6,6,105,-;[   5760]     0  5760      567      317        0      317         0    40960        0           999 busybox
6,7,106,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=02d5,mems_allowed=0,oom_memcg=/k/pod95,task_memcg=/k/pod95/02d5,task=busybox,pid=5760,uid=0
 SUBSYSTEM=x
3,8,107,-;Memory cgroup out of memory: Killed process 5760 (busybox) total-vm:2268kB, anon-rss:0kB`

func messages(text string) (all []Message) {
	for record := range strings.SplitSeq(strings.ReplaceAll(text, "\n ", "\x00"), "\n") {
		all = append(all, parse(strings.ReplaceAll(record, "\x00", "\n ")))
	}
	return all
}

// DA-11, RS-07: who was killed for want of memory, and who had used what, is read from the kernel's words, whatever a process
// calls itself.
func TestOutOfMemory(t *testing.T) {
	busybox := Process{5760, "busybox", 317 << 12}
	whole := Kill{106 * time.Microsecond, "/k/pod95/02d5", busybox, []Process{busybox, {22207, "pause", 137 << 12}, {5758, "my worker", 128 << 12}}}
	lines := strings.Split(report, "\n")
	for what, c := range map[string]struct {
		text string
		want []Kill
	}{
		"a report":                  {report, []Kill{whole}},
		"two":                       {report + "\n" + report, []Kill{whole, whole}},
		"its beginning overwritten": {strings.Join(lines[4:], "\n"), []Kill{{At: whole.At, Group: whole.Group, Killed: Process{PID: 5760, Name: "busybox"}}}},
		"a name that lies": {"6,7,106,-;oom-kill:constraint=X,task_memcg=/a,task=,pid=1,task=b,,pid=7,uid=0", []Kill{{At: whole.At, Group: "/a",
			Killed: Process{PID: 7, Name: ",pid=1,task=b,"}}}},
		"no number":              {"6,7,106,-;oom-kill:constraint=X,task_memcg=/a,task=b,pid=,uid=0", nil},
		"no group":               {"6,7,106,-;oom-kill:constraint=X,task_memcg=,task=b,pid=1,uid=0", nil},
		"its end has not come":   {strings.Join(lines[:6], "\n"), nil},
		"of a kernel before 5.0": {lines[0] + "\n" + lines[8], nil},
		"other brackets":         {"6,1,1,-;[   1] not a table\n6,2,2,-;[  pid  ] uid name\n6,3,3,-;[ 1 ] 2 3", nil},
		"no numbers":             {lines[2] + "\n6,4,103,-;[ x ] 0 1 1 1 1 1 1 1 1 1 a\n6,4,103,-;[ 1 ] 0 1 1 y 1 1 1 1 1 1 a\n6,7,1,-;oom-kill:task_memcg=/a,task=b,pid=1,uid=0", []Kill{{At: time.Microsecond, Group: "/a", Killed: Process{PID: 1, Name: "b"}}}},
	} {
		if got := OutOfMemory(messages(c.text), 4096); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}
