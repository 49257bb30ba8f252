// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/test/e2e"
)

const slots = 30

// storm is one run.
type storm struct {
	*e2e.Space
	t    *testing.T
	rand *rand.Rand
	now  [slots]*actor // who is wanted
	all  []*actor
	did  map[string]int

	aside sync.WaitGroup // what goes on beside the storm: looks into pods, and processes that stand still for a while
	fresh int            // descriptors of a server that has no pods
}

// actor is one pod that was ever created.
type actor struct {
	pod   *corev1.Pod
	shape shape
	stage *e2e.Stage
}

// TestChaos proves SC-02, SC-05, SC-06, SC-19, PL-02, PL-10 and PID-06 under fire.
func TestChaos(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the chaos test makes containers; it needs root")
	}
	ctx := t.Context()
	world, err := e2e.NewWorld(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Close() })
	srv, err := e2e.NewServer(ctx, world, e2e.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, bad := range srv.Complaints() {
			t.Error(bad)
		}
		if t.Failed() {
			file := filepath.Join(os.TempDir(), fmt.Sprintf("chaos-%d.log", time.Now().UnixNano()))
			t.Logf("the server's log is kept: %s (%v)", file, os.WriteFile(file, []byte(srv.Log()), 0o644))
		}
		if err := srv.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	long := 40 * time.Second
	if text := os.Getenv("CHAOS"); text != "" {
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CHAOS=%s CHAOS_SEED=%d", long, seed)
	s := &storm{Space: srv.Space(t), t: t, rand: rand.New(rand.NewPCG(seed, 0)), did: map[string]int{}}
	s.fresh = s.descriptors()
	for i := range slots {
		s.create(i)
	}
	s.blow(time.Now().Add(long))
	s.aside.Wait()
	t.Logf("after %d pods: %v", len(s.all), s.did)
	s.calm()
	s.judge()
	s.leave()
	s.flat()
}

// create puts a new pod into a slot.
func (s *storm) create(slot int) {
	s.t.Helper()
	shape := shapes()[slot%len(shapes())]
	a := &actor{shape: shape, stage: s.NewStage(s.t)}
	pod := shape.make(a.stage, fmt.Sprintf("%s-%d", shape.name, len(s.all)))
	a.pod = s.Create(pod)
	s.now[slot] = a
	s.all = append(s.all, a)
}

// blow does bad things until the time is over.
func (s *storm) blow(until time.Time) {
	server := time.Now().Add(8 * time.Second)
	for time.Now().Before(until) {
		time.Sleep(time.Duration(200+s.rand.IntN(600)) * time.Millisecond) // misfortune keeps no events to wait for
		switch n := s.rand.IntN(100); {
		case time.Now().After(server):
			s.did["kill server"]++
			s.note("kill-server")
			s.Kill()
			for range s.rand.IntN(4) { // what dies meanwhile
				s.shoot([]string{"container", "pause", "shim"}[s.rand.IntN(3)], "down")
			}
			if err := s.Server.Start(s.t.Context()); err != nil {
				s.t.Fatal(err)
			}
			server = time.Now().Add(time.Duration(5+s.rand.IntN(15)) * time.Second)
		case n < 35:
			s.shoot("container", "up")
		case n < 48:
			s.shoot("pause", "up")
		case n < 57:
			s.shoot("shim", "up")
		case n < 63:
			s.stall()
		case n < 66:
			s.did["lose network"]++
			if err := s.LoseNetwork(); err != nil {
				s.t.Fatal(err)
			}
		case n < 74:
			s.look()
		default:
			s.replace(s.rand.IntN(slots))
		}
	}
}

// note puts a line into every pod's journal.
func (s *storm) note(what string) {
	for _, a := range s.all {
		a.stage.Note(what)
	}
}

// shoot kills one process of a kind, while the server is up or down.
func (s *storm) shoot(kind, server string) {
	pids, err := s.Processes(kind)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(pids) == 0 {
		return
	}
	s.note("shoot-" + kind + "-" + server)
	if syscall.Kill(pids[s.rand.IntN(len(pids))], syscall.SIGKILL) == nil {
		s.did["kill "+kind]++
	}
}

// replace deletes a slot's pod, now and then by force, and makes another.
func (s *storm) replace(slot int) {
	options := metav1.DeleteOptions{}
	what := "delete"
	if s.rand.IntN(4) == 0 {
		options.GracePeriodSeconds = ptr.To[int64](0)
		what = "delete by force"
	}
	s.did[what]++
	err := s.Client.CoreV1().Pods(s.Namespace).Delete(s.Context(), s.now[slot].pod.Name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
	s.create(slot)
}

// calm waits until every pod that is wanted is what it should be. That takes as long as the longest back-off.
func (s *storm) calm() {
	deadline := time.Now().Add(5*time.Minute + 30*time.Second)
	for _, a := range s.now {
		for ; ; time.Sleep(200 * time.Millisecond) { // one poll in turn is less than thirty watches
			p := s.Get(a.pod.Name)
			if a.shape.settled(p) {
				break
			}
			if time.Now().After(deadline) {
				s.t.Errorf("pod %s does not come to rest: %s, %+v", p.Name, p.Status.Phase, p.Status)
				break
			}
		}
	}
}

// judge reads the journals.
func (s *storm) judge() {
	for _, a := range s.all {
		play := a.stage.Play() // this checks that no container was there twice at once
		boxes := map[string]map[string]bool{}
		at := map[string]string{} // the sandbox that a container last started in
		for _, m := range play.Moments {
			if box, ok := cut(m.What); ok {
				at[m.Who] = box
				if boxes[box] == nil {
					boxes[box] = map[string]bool{}
				}
				a.begins(s.t, play, boxes[box], m.Who, box)
				boxes[box][m.Who] = true
			}
			if m.What == "end" && boxes[at[m.Who]] != nil {
				boxes[at[m.Who]][m.Who+" done"] = true
			}
		}
	}
}

func cut(what string) (string, bool) {
	if len(what) > 3 && what[:3] == "in-" {
		return what[3:], true
	}
	return "", false
}

// begins checks that who may start now in a sandbox where these have.
func (a *actor) begins(t *testing.T, play e2e.Play, done map[string]bool, who, box string) {
	t.Helper()
	for _, c := range a.pod.Spec.InitContainers {
		sidecar := c.RestartPolicy != nil
		switch {
		case c.Name == who:
			switch {
			case sidecar || !done[who+" done"]:
			case unknowable(play, who, box):
				t.Logf("pod %s: init %s ran again in sandbox %s: it, or its shim, may have been shot at its end", a.pod.Name, who, box)
			default:
				t.Errorf("SC-19 pod %s: init %s ran again in sandbox %s after it had completed:\n%s", a.pod.Name, who, box, play)
			}
			return
		case sidecar && c.StartupProbe != nil && !done[c.Name]: // without one it has started before it can write so
			t.Errorf("SC-02 pod %s: %s started before sidecar %s in sandbox %s:\n%s", a.pod.Name, who, c.Name, box, play)
		case !sidecar && !done[c.Name+" done"]:
			t.Errorf("SC-02 pod %s: %s started before init %s had completed in sandbox %s:\n%s", a.pod.Name, who, c.Name, box, play)
		}
	}
}

// unknowable tells whether nobody can know how a container ended in a sandbox: it was perhaps shot itself between its last word
// and its end, or its shim, which alone knew, was shot while there was no server that it could tell.
func unknowable(play e2e.Play, who, box string) bool {
	var killed, ended time.Time
	in := ""
	for _, m := range play.Moments {
		if at, starts := cut(m.What); starts && m.Who == who {
			in = at
		}
		if m.What == "end" && m.Who == who && in == box {
			ended = m.At
			break
		}
	}
	for _, m := range play.Moments {
		switch {
		case m.What == "kill-server":
			killed = m.At
		case !strings.HasPrefix(m.What, "shoot-"):
		case m.At.After(ended.Add(-200*time.Millisecond)) && m.At.Before(ended.Add(500*time.Millisecond)):
			return true
		case m.What == "shoot-shim-down" && m.At.After(ended) && ended.After(killed.Add(-500*time.Millisecond)):
			return true
		}
	}
	return false
}

// leave deletes all pods and looks for what is left of any that there ever was.
func (s *storm) leave() {
	if err := s.Client.CoreV1().Pods(s.Namespace).DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		s.t.Fatal(err)
	}
	for _, a := range s.now {
		s.WaitGone(a.pod)
	}
	for _, a := range s.all {
		s.AwaitNoTrace(a.pod)
	}
	for _, kind := range []string{"container", "pause", "shim"} {
		var pids []int
		for range 50 { // a shim takes a moment to end
			var err error
			if pids, err = s.Processes(kind); err != nil {
				s.t.Fatal(err)
			}
			if len(pids) == 0 {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
		for _, pid := range pids {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it has ended meanwhile
			s.t.Errorf("PL-10 a process is left: %d %s", pid, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
}
