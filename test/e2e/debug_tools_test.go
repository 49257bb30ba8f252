// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"testing"

	"github.com/creack/pty"
)

// TestDebugLeavesNoProcesses: what a debug session started ends with it, and is no zombie among the processes of the container that it
// joined, whose program does not expect orphans (DC-04, DC-08).
func TestDebugLeavesNoProcesses(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	s.wherry(nil, "debug", "web", "-c", "one", "--", "sh", "-c", "sh -c 'sleep 1001 & exit'; sleep 1002 & exit 3").exits(3)
	c := s.shell(pty.Winsize{Rows: 20, Cols: 80}, "debug", "web", "-c", "two", "-m", "wherry.dev/toolbox")
	c.Await("# ")
	c.typed("sh -c 'sleep 1003 & exit'; sleep 1004 & echo on-$((1+1))\r")
	c.Await("on-2")
	s.wherry(nil, "debug", "stop", "web", "two").exits(0)
	c.code()
	list := s.wherry(nil, "debug", "web", "-c", "three", "--", "ps", "-o", "stat,args").exits(0).Out
	if regexp.MustCompile(`(?m)^ *Z|sleep 100\d`).MatchString(list) {
		t.Errorf("left behind:\n%s", list)
	}
}

// TestDebugCaptures: packets of the pod's network can be seen without any further right (DC-01).
func TestDebugCaptures(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	const line = "tcpdump -n -i lo -c 1 icmp 2>heard >seen & until grep -q listening heard; do :; done; ping -q -c 1 127.0.0.1 >ping; wait $!; cat seen"
	s.wherry(nil, "debug", "web", "--", "sh", "-c", "cd /tmp; "+line).exits(0).Has("127.0.0.1 > 127.0.0.1: ICMP echo request")
}
