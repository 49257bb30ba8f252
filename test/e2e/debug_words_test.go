// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/test/images"
)

// DC-07 DC-08 DC-09: a session that somebody else ends says why, on a terminal and without one; a name alone comes back to a debug container
// and makes none; ls -o json tells programs how it ended.
func TestDebugSessionWords(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")

	console := s.shell(pty.Winsize{Rows: 20, Cols: 80}, "debug", "web")
	console.typed("echo be''gun\r")
	console.Await("begun")
	s.wherry(nil, "debug", "stop", "pod/web", "debug").exits(0)
	console.Await("the session has ended: wherry-admin stopped debug container debug")
	s.overTime("debug", "web", "--", "sleep", "60").Says("the session has ended: debug container debug reached its time limit")

	s.wherry(nil, "debug", "web", "-c", "debug").exits(1).Says("has ended", "wherry debug -c debug -m wherry.dev/toolbox web")
	s.wherry(nil, "debug", "web", "-c", "debgu").exits(1).Says("no debug container debgu")
	if n := len(s.Get("web").Spec.EphemeralContainers); n != 1 {
		t.Errorf("DC-07 the pod has %d debug containers", n)
	}
	var list struct {
		Items []struct {
			Name, Status string
			ExitCode     *int32
		}
	}
	r := s.wherry(nil, "debug", "ls", "web", "-o", "json").exits(0)
	if err := json.Unmarshal([]byte(r.Out), &list); err != nil || len(list.Items) != 1 || list.Items[0].Status != "Exited" || list.Items[0].ExitCode == nil {
		t.Errorf("%v: %s", err, r.Out)
	}

	going := s.command("debug", "web", "--", "sh", "-c", "echo begun; sleep 60").StartProcess()
	going.Out.Await("begun")
	if err := s.Client.CoreV1().Pods(s.Namespace).Delete(s.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	going.Err.Await("the session has ended: pod web")
	going.Wait()
}

// overTime runs wherry debug with a time limit that is over when the container runs. The limit counts from the request,
// and a machine that has much else to do may not have started the container by then: the next limit is longer.
func (s *Space) overTime(args ...string) Result {
	s.T.Helper()
	for limit := time.Second; ; limit *= 2 {
		at := slices.Index(args, "--")
		r := s.wherry(nil, slices.Insert(slices.Clone(args), at, "--ttl", limit.String())...)
		if limit > Timeout || !strings.Contains(r.Err, "it was stopped at") || !strings.Contains(r.Err, "before it had started") {
			return r
		}
	}
}

// DC-15: in a pod of several containers the user is told which can be joined.
func TestDebugNoteOnTerminal(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("two", Named("app", Tool("sleep")), Named("helper", Tool("sleep"))))
	s.WaitReady("two")
	console := s.shell(pty.Winsize{Rows: 20, Cols: 120}, "debug", "two")
	console.Await("--target app, or --target helper")
	console.typed("exit\r")
	if code := console.code(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// DC-14: wherry debug node/NAME is on the node, and leaves no pod.
func TestDebugNode(t *testing.T) {
	t.Parallel()
	s := shared(t)
	r := s.wherry(strings.NewReader(""), "debug", "node/"+s.NodeName, "--", "sh", "-c", "test -d /host/proc && test -d /proc/1 && echo there; exit 3").exits(3)
	if r.Out != "there\n" {
		t.Errorf("%q, %q", r.Out, r.Err)
	}
	pods, err := s.Client.CoreV1().Pods(s.Namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			t.Errorf("pod %s is left (%s)", p.Name, p.Status.Phase)
		}
	}
	s.wherry(nil, "debug", "node/no-such-node", "--", "true").exits(1).Says("not found")
}

// DC-01: what stands after -- reaches the shell as it was typed, its own process ID among it; the lists show it so too.
func TestDebugCommandIsLiteral(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	r := s.wherry(nil, "debug", "-q", "web", "-m", images.BusyboxRef, "--", "sh", "-c", `echo $$ $(echo sub) "$0" | tr '[0-9]' N`, "a$$b").exits(0)
	if !regexp.MustCompile(`^N+ sub a\$\$b\n$`).MatchString(r.Out) {
		t.Errorf("it printed %q", r.Out)
	}
	s.wherry(nil, "debug", "ls", "web", "-o", "json").exits(0).Has(`"echo $$ $(echo sub)`, `"a$$b"`)
	s.wherry(nil, "debug", "history", "web").exits(0).Has("sh -c echo $$ $(echo sub)")
}
