// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/podspec"
)

var (
	update  = flag.Bool("update", false, "write the traces of the timelines anew")
	verbose = flag.Bool("worker-log", false, "with -v, show what workers log")
)

// TestTimelines runs every script of testdata/timelines and compares what happened with the trace that stands there. The
// comment at the head of each file says which rules it shows.
func TestTimelines(t *testing.T) {
	files, err := filepath.Glob("testdata/timelines/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no timelines: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			timeline(t, file)
		})
	}
}

func timeline(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pod *corev1.Pod
	var script, want string
	for _, f := range archive.Files {
		switch f.Name {
		case "pod.yaml":
			pod = parsePod(t, f.Data)
		case "script":
			script = string(f.Data)
		case "trace":
			want = string(f.Data)
		default:
			t.Fatalf("a timeline has no part %s", f.Name)
		}
	}
	actions, err := parseScript(script)
	if pod == nil || err != nil {
		t.Fatalf("timeline needs a pod.yaml and a script: %v", err)
	}
	var got string
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, pod)
		s.play(actions)
		got = s.trace.String()
		for _, f := range s.spy.faults {
			t.Error(f)
		}
	})
	if *update {
		archive.Files = append(archive.Files[:2:2], txtar.File{Name: "trace", Data: []byte(got)})
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("what happened is not what %s says (run with -update and read the change):\n%s", file, firstDifference(want, got))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			from := max(0, i-3)
			return fmt.Sprintf("line %d\n--- want\n%s\n--- got\n%s", i+1,
				strings.Join(w[min(from, len(w)):min(i+6, len(w))], "\n"), strings.Join(g[min(from, len(g)):min(i+6, len(g))], "\n"))
		}
	}
	return ""
}

// parsePod reads a manifest and makes of it what the API server and the scheduler would.
func parsePod(t *testing.T, data []byte) *corev1.Pod {
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatal(err)
	}
	return admitted(pod)
}

func admitted(pod *corev1.Pod) *corev1.Pod {
	if pod.Name == "" {
		pod.Name = "p"
	}
	pod.Namespace, pod.UID, pod.Spec.NodeName = "default", "6d0a", "node"
	podspec.SetDefaults(pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podspec.QOSClass(pod), Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}}
	return pod
}

// action is one line of a script: "at 2s: exit main 1".
type action struct {
	at   time.Duration
	text string
}

func parseScript(text string) (out []action, err error) {
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		at, what, ok := strings.Cut(strings.TrimPrefix(l, "at "), ": ")
		if !ok {
			return nil, fmt.Errorf("script line %q is not of the form \"at 2s: what\"", l)
		}
		d, err := time.ParseDuration(at)
		if err != nil {
			return nil, err
		}
		out = append(out, action{d, what})
	}
	if len(out) == 0 || out[len(out)-1].text != "end" {
		return nil, fmt.Errorf("a script ends with \"at <time>: end\"")
	}
	return out, nil
}

// play runs the script. What is to be so before the agent starts stands at 0s.
func (s *sim) play(actions []action) {
	started := false
	for _, a := range actions {
		if a.at > 0 && !started {
			started = true
			s.live()
		}
		time.Sleep(a.at - time.Since(s.begin))
		if a.text == "end" {
			break
		}
		if a.at > 0 {
			s.trace.add(byScript, "------- %s", a.text)
		}
		if err := s.act(strings.Fields(a.text)); err != nil {
			s.t.Fatalf("script: %s: %v", a.text, err)
		}
	}
	synctest.Wait()
	record := "no record"
	if p := s.api.get(); p != nil {
		record = "record " + summary(&p.Status)
	}
	s.trace.add(byStart, "END     node:%s; %s", nothing(s.left()), record)
	s.die()
}

func nothing(s string) string {
	if s == "" {
		return " empty"
	}
	return s
}

// act does what one line of a script says.
func (s *sim) act(words []string) error {
	name := ""
	if len(words) > 1 {
		name = words[1]
	}
	switch words[0] {
	case "exit": // exit CONTAINER CODE
		code, err := strconv.Atoi(words[2])
		if err != nil {
			return err
		}
		return s.fake.Exit(s.find(name), int32(code))
	case "oom": // oom CONTAINER
		return s.fake.OOMKill(s.find(name))
	case "behave": // behave CONTAINER [script words]: from its next attempt on
		s.behave(name, words[2:]...)
	case "delete": // delete [grace=SECONDS]
		grace := int64(-1)
		if g, ok := strings.CutPrefix(name, "grace="); ok {
			var err error
			if grace, err = strconv.ParseInt(g, 10, 64); err != nil {
				return err
			}
		}
		s.api.delete(grace)
	case "agent": // agent dies|starts
		if name == "dies" {
			s.die()
		} else {
			s.live()
		}
	case "kill": // kill pause
		ids, ready := s.fake.Sandboxes()
		for i := range ids {
			if ready[i] {
				return s.fake.KillPause(ids[i])
			}
		}
		return fmt.Errorf("no sandbox is ready")
	case "reboot": // reboot: all is gone; reboot disk: the runtime remembers
		s.die()
		s.spy.rebooted()
		if name == "disk" {
			s.fake.PowerCycle()
		} else {
			s.fake.Reboot()
		}
	case "runtime": // runtime down|up
		if name == "down" {
			s.fake.Down()
		} else {
			s.fake.Up()
		}
	case "api": // api down|up|deaf
		s.api.power(name != "down")
	case "image": // image CONTAINER NEW
		s.api.edit(func(p *corev1.Pod) {
			for i := range p.Spec.Containers {
				if p.Spec.Containers[i].Name == name {
					p.Spec.Containers[i].Image = words[2]
				}
			}
		})
	case "debug": // debug NAME [run=1] [stop=5s] [target=main] [image=i] [script words]
		return s.debug(name, words[2:])
	case "stop-debug": // stop-debug NAME
		return s.stopDebug(name)
	case "hold": // hold DURATION|off
		return s.hold(name)
	case "finalizer": // finalizer on|off
		s.api.edit(func(p *corev1.Pod) {
			p.Finalizers = nil
			if name == "on" {
				p.Finalizers = []string{"example.com/hold"}
			}
			if name == "off" && p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0 {
				s.api.remove()
			}
		})
	case "publish": // publish IMAGE [delay=5s] [error=some_words]
		r := critest.Remote{}
		for _, w := range words[2:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "delay":
				var err error
				if r.PullDelay, err = time.ParseDuration(value); err != nil {
					return err
				}
			case "error":
				r.PullError = fmt.Errorf("%s", strings.ReplaceAll(value, "_", " "))
			}
		}
		s.fake.Publish(name, r)
	case "detach": // calls that are given up go on in the runtime
		s.fake.DetachCancelled(true)
	case "import": // import IMAGE: it is on the node
		s.fake.AddImage(name, critest.Image{})
	case "remove-image": // remove-image IMAGE: it is on the node no more
		_, err := s.truth.Images.RemoveImage(context.Background(), &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: name}})
		return err
	case "unsupported": // unsupported METHOD: this runtime does not know what it is asked for
		s.spy.bedevil(func(method, _ string) (error, bool) {
			if method == name {
				return status.Error(codes.Unimplemented, "namespace mode is not supported"), false
			}
			return nil, false
		})
	case "break": // break METHOD: it fails; break METHOD late: it is done, and answered with an error
		late := len(words) > 2
		s.spy.bedevil(func(method, _ string) (error, bool) {
			if method == name {
				return errBroken(), late
			}
			return nil, false
		})
	case "mend":
		s.spy.bedevil(nil)
	case "slow": // slow METHOD DURATION
		d, err := time.ParseDuration(words[2])
		if err != nil {
			return err
		}
		s.fake.Delay(name, d)
	default:
		return fmt.Errorf("no such action")
	}
	return nil
}
