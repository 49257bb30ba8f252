// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestMaxPIDs: RS-05 (ATTACK B7), EC-19: a pod, a debug container and an image exec have no more processes than the
// node's flags say.
func TestMaxPIDs(t *testing.T) {
	t.Parallel()
	needV1(t)
	srv := own(t, ServerOptions{Args: []string{"--pod-max-pids", "150", "--debug-max-pids", "60"}})
	k := kitOn(t, srv)
	pod := k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	dir := k.cgroupOf("pids", pod)
	if got := k.value(dir, "pids.max"); got != "150" {
		t.Errorf("pids.max of the pod is %s", got)
	}
	// The shell of busybox ends when it cannot fork.
	out, _,
		_ := k.exec("app", "main", "sh", "-c", "(for i in $(seq 300); do sleep 1234 >/dev/null 2>&1 & done) 2>&1; true")
	if !strings.Contains(out, "can't fork") {
		t.Errorf("300 processes in a pod of 150: %q", out)
	}
	if n, err := strconv.Atoi(k.value(dir, "pids.current")); err != nil || n > 150 || n < 100 {
		t.Errorf("%d processes, %v", n, err)
	}
	k.Delete("app")

	k.up(`{metadata: {name: other}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	// On cgroup v1 the limit comes right after the start.
	limit := "for i in $(seq 600); do read max < /sys/fs/cgroup/pids/pids.max; [ $max = max ] || break; sleep 0.1; done; cat /sys/fs/cgroup/pids/pids.max; (for i in $(seq 80); do sleep 1234 >/dev/null 2>&1 & done) 2>&1; true"
	stdout, _, _ := k.into("other", limit)
	if !strings.HasPrefix(stdout, "60\n") || !strings.Contains(stdout, "can't fork") {
		t.Errorf("image exec: %q", stdout)
	}
	out, err := k.debug("other", "dbg", limit)
	if err != nil || !strings.HasPrefix(out, "60\n") || !strings.Contains(out, "can't fork") {
		t.Errorf("debug: %q, %v", out, err)
	}
}

// TestForks: RS-05 (ATTACK B7): thousands of forks in a debug container, or in an image exec, of a server that was told
// nothing end at its limit, and the containers beside them go on.
func TestForks(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	before := facts(k.Get("app"))
	const limit = 1024
	// On cgroup v1 the limit comes right after the start. Where no process can be made, only what the shell does itself
	// goes on.
	script := `d=/sys/fs/cgroup/pids; [ -e $d/pids.max ] || d=/sys/fs/cgroup
for i in $(seq 600); do read max < $d/pids.max; [ $max = max ] || break; sleep 0.1; done
(for i in $(seq 3000); do sleep 1234 >/dev/null 2>&1 & done) 2>&1
read now < $d/pids.current; echo $max $now`
	stopped := func(what, out string) {
		t.Helper()
		var most, now int
		lines := strings.Split(strings.TrimSpace(out), "\n")
		_, err := fmt.Sscan(lines[len(lines)-1], &most, &now)
		if err != nil || !strings.Contains(out, "can't fork") || most != limit || now > limit || now < limit/2 {
			t.Errorf("3000 forks in %s: %q (%v)", what, out, err)
		}
	}
	out, err := k.debug("app", "dbg", script)
	k.must(err)
	stopped("a debug container", out)
	out, _, _ = k.into("app", script)
	stopped("an image exec", out)
	k.says("app", "main", "echo here", "here")
	if after := facts(k.Get("app")); after != before {
		t.Errorf("the pod is %s; it was %s", after, before)
	}
}
