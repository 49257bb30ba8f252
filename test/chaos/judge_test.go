// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/test/e2e"
)

// calm waits until every pod that is wanted is what it should be. That takes as long as the longest back-off.
func (s *storm) calm() {
	deadline := time.Now().Add(5*time.Minute + 30*time.Second)
	for slot := range s.now {
		for ; ; time.Sleep(200 * time.Millisecond) { // one poll in turn is less than thirty watches
			a := s.now[slot]
			var p *corev1.Pod
			s.try("get pod "+a.pod.Name, func() (err error) {
				p, err = s.Client.CoreV1().Pods(s.Namespace).Get(s.Context(), a.pod.Name, metav1.GetOptions{})
				return err
			})
			if a.shape.settled(p) {
				break
			}
			if p.Status.Reason == "Evicted" && s.kind.name == "disk" {
				s.did["replace evicted"]++
				s.replace(slot)
				continue
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
				a.begins(s, play, boxes[box], m.Who, box)
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
func (a *actor) begins(s *storm, play e2e.Play, done map[string]bool, who, box string) {
	t := s.t
	t.Helper()
	for _, c := range a.pod.Spec.InitContainers {
		sidecar := c.RestartPolicy != nil
		switch {
		case c.Name == who:
			switch {
			case sidecar || !done[who+" done"]:
			case unknowable(play, who, box):
				t.Logf("pod %s: init %s ran again in sandbox %s: it, or its shim, may have been shot at its end", a.pod.Name, who, box)
			case s.kind.outside && orphaned(play, who, box):
				t.Logf("pod %s: init %s ran again in sandbox %s: the server was killed while it had it started", a.pod.Name, who, box)
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
// and its end, or its shim, which alone knew, was shot while there was no server that it could tell, or an external containerd was killed
// before it had written down what it knew (1.6 first removes the task).
func unknowable(play e2e.Play, who, box string) bool {
	var killed, begun, ended time.Time
	in := ""
	for _, m := range play.Moments {
		if at, starts := cut(m.What); starts && m.Who == who {
			in, begun = at, m.At
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
		case m.What == "kill-containerd":
			killed = m.At
			if m.At.After(begun.Add(-500*time.Millisecond)) && m.At.Before(ended.Add(3*time.Second)) {
				return true
			}
		case !strings.HasPrefix(m.What, "shoot-"):
		case m.At.After(ended.Add(-200*time.Millisecond)) && m.At.Before(ended.Add(500*time.Millisecond)):
			return true
		case m.What == "shoot-shim-down" && m.At.After(ended) && ended.After(killed.Add(-500*time.Millisecond)):
			return true
		}
	}
	return false
}

// orphaned tells whether the server was killed while it had a container started in a sandbox. An external containerd takes that for a call
// that was given up, and then says of the container that it could not be started, though it may have started, and even completed.
func orphaned(play e2e.Play, who, box string) bool {
	const longest = 5 * time.Second // a start, on a machine that is busy with storms
	var killed time.Time
	in := ""
	var begun time.Time
	for _, m := range play.Moments {
		at, starts := cut(m.What)
		switch {
		case m.What == "kill-server":
			killed = m.At
			if in == box && m.At.Sub(begun) < longest {
				return true
			}
		case starts && m.Who == who:
			in, begun = at, m.At
			if in == box && m.At.Sub(killed) < longest {
				return true
			}
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
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it has ended meanwhile
			line := strings.ReplaceAll(string(text), "\x00", " ")
			if kind == "shim" && s.kind.outside {
				s.t.Logf("containerd has left a shim that it was starting when it, or who asked for it, was killed: %s", line)
				continue
			}
			s.t.Errorf("PL-10 a process is left: %d %s", pid, line)
		}
	}
}
