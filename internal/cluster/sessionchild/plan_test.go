// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/engines/byrpc"
)

// shop is a pod of which app runs, old has ended, and broken cannot be told.
func shop(keeper int) *byrpc.Pod {
	of := func(name, image string, attempt uint32, pid int) byrpc.PodContainer {
		c := &engines.Container{Name: name, ID: fmt.Sprint(name, attempt), Image: image, PID: pid, State: engines.Exited}
		if pid > 0 {
			c.State = engines.Running
		}
		return byrpc.PodContainer{Name: name, Attempt: attempt, ImageRef: "sha256:" + name, Container: c}
	}
	return &byrpc.Pod{Keeper: keeper, Containers: []byrpc.PodContainer{of("app", "app:1", 1, 77), of("app", "app:0", 0, 0),
		{Name: "broken", Err: errors.New("it is broken")}, of("old", "registry.example/old@sha256:"+strings.Repeat("a", 64), 0, 0)}}
}

func ask(as, container string) wire.Session {
	return wire.Session{As: as, Container: container, Order: []string{"old", "app", "broken", "later"}, Seconds: 60, By: "jane",
		Pod: wire.Pod{Namespace: "shop", Name: "web", UID: "u"}, ID: "0123456789ab"}
}

// What is joined and shown, and what is said of the rest (DA-02, DA-03).
func TestPlan(t *testing.T) {
	for _, test := range []struct {
		name    string
		session wire.Session
		keeper  int
		joined  int
		target  string
		beside  string
		notes   int
	}{
		{"a shell", ask(wire.Shell, "app"), 5, 5, "app1", "", 0},
		{"a shell with one that has ended", ask(wire.Shell, "old"), 5, 5, "old0", "", 1},
		{"all files", ask(wire.Exec, ""), 5, 5, "", "old0 app1", 2},
		{"all files, and one's processes", ask(wire.Exec, "app"), 5, 5, "app1", "old0", 2},
		{"a pod without a process of its own", ask(wire.Files, ""), 0, 77, "", "old0 app1", 2},
		{"a shell where the pod has none", ask(wire.Shell, "app"), 0, 0, "app1", "", 0},
	} {
		p, err := plan(test.session, shop(test.keeper))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		target, beside := "", []string{}
		if p.request.Target != nil {
			target = p.request.Target.ID
		}
		for _, c := range p.request.Beside {
			beside = append(beside, c.ID)
		}
		r := p.request
		if target != test.target || strings.Join(beside, " ") != test.beside || len(p.notes) != test.notes || r.Keeper != test.joined {
			t.Errorf("%s: %s, %q, %q", test.name, target, beside, p.notes)
		}
		if named := r.KeeperName != ""; named != (r.Keeper == 77) || named && r.KeeperName != "app" {
			t.Errorf("%s: keeper %d is %q", test.name, r.Keeper, r.KeeperName)
		}
		if r.ID != "0123456789ab" || r.TTL.Seconds() != 60 || r.Record.User != "jane" || r.Record.Pod.UID != "u" {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// DA-03: a pod that has ended has its last files, and it is said that it has no network.
func TestPlanOfTheDead(t *testing.T) {
	pod := shop(0)
	pod.Containers = pod.Containers[1:]
	p, err := plan(ask(wire.Files, ""), pod)
	if err != nil || p.request.Keeper != 0 || len(p.request.Beside) != 2 || !strings.Contains(p.notes[0], "no network") {
		t.Errorf("%+v, %v", p, err)
	}
}

// What cannot be is refused with a code that says whose mistake it is.
func TestPlanRefuses(t *testing.T) {
	writable := ask(wire.Shell, "old")
	writable.Writable = true
	user := ask(wire.Shell, "app")
	user.User = "me"
	for name, test := range map[string]struct {
		session wire.Session
		code    int
	}{"no such container": {ask(wire.Shell, "none"), 404}, "evidence": {writable, 409}, "a user": {user, 400},
		"one that cannot be told": {ask(wire.Shell, "broken"), 500}} {
		if p, err := plan(test.session, shop(5)); err == nil || refusalOf(err).Code != test.code {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for other, code := range map[string]int{"": http.StatusNotFound, "u2": http.StatusConflict} {
		r := refusalOf(fmt.Errorf("x: %w", &byrpc.NotHere{Other: other}))
		if r.Code != code || r.Reason != wire.ReasonPodNotOnNode {
			t.Errorf("DA-07 %q: %+v", other, r)
		}
	}
}

// DA-07: of the node's own images only those of this pod are taken, by what the runtime calls them.
func TestOwnImage(t *testing.T) {
	for ref, want := range map[string]string{"app:1": "sha256:app", "docker.io/library/app:1": "sha256:app", "app:0": "sha256:app",
		"app": "", "app:2": "", "other:1": "", "": "", "registry.example/old": "",
		"registry.example/old@sha256:" + strings.Repeat("a", 64): "sha256:old"} {
		if got := ownImage(ref, shop(5)); got != want {
			t.Errorf("%q: %q", ref, got)
		}
	}
}

// An evidence says what there is, also of one that cannot be told.
func TestKnown(t *testing.T) {
	pod := shop(5)
	if e := known(pod.Containers[2]); e.State != "unknown" || e.Message != "it is broken" || e.Files {
		t.Errorf("%+v", e)
	}
	pod.Containers[1].Container.ExitCode, pod.Containers[1].Container.OOMKilled = 137, true
	if e := known(pod.Containers[1]); e.State != "exited" || *e.ExitCode != 137 || e.Signal != "SIGKILL" || !e.OOMKilled || e.Files ||
		e.StartedAt != nil {
		t.Errorf("%+v", e)
	}
	if e := known(pod.Containers[0]); e.State != "running" || e.ExitCode != nil || !e.Files || e.Attempt != 1 {
		t.Errorf("%+v", e)
	}
}
