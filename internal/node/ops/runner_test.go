// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/refs"
	"github.com/wherryproject/wherry/internal/node/volume"
	"github.com/wherryproject/wherry/internal/node/work"
)

// bench is a Runner over a fake runtime, for one pod.
type bench struct {
	*Runner
	t      *testing.T
	fake   *critest.Fake
	pod    *corev1.Pod
	events []string
}

func (b *bench) Event(_ *corev1.Pod, fieldPath, _, reason, message string) {
	b.events = append(b.events, strings.TrimSpace(fieldPath+" "+reason+": "+message))
}

func newBench(t *testing.T, change func(*corev1.Pod)) *bench {
	b := &bench{t: t, fake: critest.NewFake(critest.Config{AnyImage: true, Logs: true}), pod: basePod(change)}
	dir := t.TempDir()
	client, sources := b.fake.Client(), refs.New(refs.Config{})
	t.Cleanup(sources.Close)
	pods := filepath.Join(dir, "pods")
	b.Runner = New(Config{CRI: client, Images: image.New(image.Config{Images: client.Images}), Sources: sources, Events: b,
		Volumes: volume.New(volume.Config{Root: pods, Sources: sources}), PodsFolder: pods,
		Logs: LogFolders{Pods: filepath.Join(dir, "logs"), Links: filepath.Join(dir, "links")}, Logger: slog.New(slog.DiscardHandler)})
	return b
}

func (b *bench) see() plan.Seen {
	b.t.Helper()
	seen, err := b.Observe(context.Background(), b.pod)
	if err != nil {
		b.t.Fatal(err)
	}
	return seen
}

func (b *bench) task(op plan.Op) work.Task {
	b.t.Helper()
	return b.taskOn(op, b.see())
}

func (b *bench) taskOn(op plan.Op, seen plan.Seen) work.Task {
	return work.Task{Pod: b.pod, Op: op, Seen: seen}
}

// must runs an operation twice: all are idempotent.
func (b *bench) must(op plan.Op) {
	b.t.Helper()
	for range 2 {
		if err := b.Do(context.Background(), b.task(op)); err != nil && !alreadyMade(op, err) {
			b.t.Fatalf("%v %s: %v", op.Verb, op.Container, err)
		}
	}
}

// alreadyMade: making a sandbox or starting a container a second time is refused by the runtime, and nothing else happens.
func alreadyMade(op plan.Op, err error) bool {
	return op.Verb == plan.RunSandbox && strings.Contains(err.Error(), "reserved") ||
		op.Verb == plan.StartContainer && strings.Contains(err.Error(), "CONTAINER_RUNNING")
}

func (b *bench) up() {
	b.t.Helper()
	for _, op := range []plan.Op{{Verb: plan.PrepareVolumes}, {Verb: plan.RunSandbox}, {Verb: plan.PullImage, Container: "main"}, {Verb: plan.StartContainer, Container: "main"}} {
		b.must(op)
	}
}

// TestEveryOperationTwice takes a pod up and down, every operation twice, and leaves nothing behind (PL-10).
func TestEveryOperationTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.up()
		seen := b.see()
		if len(seen.Sandboxes) != 1 || len(seen.Containers) != 1 || !seen.Containers[0].Running() || !seen.Volumes || !seen.Logs {
			t.Fatalf("after the start there is %+v", seen)
		}
		links, _ := filepath.Glob(filepath.Join(b.Logs.Links, "web_shop_main-*.log"))
		if len(links) != 1 {
			t.Errorf("PL-09 links for log shippers: %v", links)
		}
		for _, op := range []plan.Op{{Verb: plan.StopContainer, Container: "main", Until: time.Now().Add(time.Minute)}, {Verb: plan.RemoveContainer, Container: "main"},
			{Verb: plan.StopSandbox}, {Verb: plan.ReleaseVolumes}, {Verb: plan.RemoveSandbox}, {Verb: plan.RemoveLogs}} {
			b.must(op)
		}
		seen = b.see()
		if len(seen.Sandboxes) != 0 || len(seen.Containers) != 0 || seen.Volumes || seen.Logs {
			t.Errorf("PL-10 something is left: %+v", seen)
		}
		if links, _ := filepath.Glob(filepath.Join(b.Logs.Links, "*")); len(links) != 0 {
			t.Errorf("PL-10 links are left: %v", links)
		}
	})
}

// TestStopSooner: a deadline that is brought forward overtakes the stop that is out (PL-10).
func TestStopSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"ignore_sigterm=true"} })
		b.up()
		sooner := make(chan time.Time, 1)
		task := b.task(plan.Op{Verb: plan.StopContainer, Container: "main", Until: time.Now().Add(time.Minute)})
		task.Sooner = sooner
		begin := time.Now()
		done := make(chan error)
		go func() { done <- b.Do(context.Background(), task) }()
		time.Sleep(5 * time.Second)
		sooner <- begin.Add(8 * time.Second)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 8*time.Second {
			t.Errorf("killed after %v, not 8s", took)
		}
	})
}

// TestStopCutOff: a stop that is called off returns, and leaves the container to itself.
func TestStopCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"ignore_sigterm=true"} })
		b.up()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := b.Do(ctx, b.task(plan.Op{Verb: plan.StopContainer, Container: "main", Until: time.Now().Add(time.Minute)})); err == nil {
			t.Error("a stop that was called off says it is done")
		}
		if c := b.see().Containers[0]; !c.Running() {
			t.Errorf("the container has ended: %+v", c)
		}
	})
}

// TestSandboxOutlasts: the making of a sandbox is waited for although nobody wants it any more, but not for ever (PL-10).
func TestSandboxOutlasts(t *testing.T) {
	for _, c := range []struct {
		takes, returns time.Duration
		made           bool
	}{{8 * time.Second, 8 * time.Second, true}, {time.Hour, 3*time.Second + patience, false}} {
		t.Run(c.takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.fake.Delay("RunPodSandbox", c.takes)
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				begin := time.Now()
				err := b.Do(ctx, b.task(plan.Op{Verb: plan.RunSandbox}))
				if took := time.Since(begin); took != c.returns || (err == nil) != c.made {
					t.Errorf("returned after %v with %v", took, err)
				}
				if made := len(b.see().Sandboxes) == 1; made != c.made {
					t.Errorf("sandboxes after the return: %v", b.see().Sandboxes)
				}
			})
		})
	}
}

// TestReasons: an operation that fails says why in the kubelet's words (PL-03, PL-15).
func TestReasons(t *testing.T) {
	optional := func(p *corev1.Pod) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr(true)}
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		op     plan.Op
		reason string
		says   string
	}{
		{"create", func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"create_error=no_device"} }, plan.Op{Verb: plan.StartContainer, Container: "main"}, "CreateContainerError", "no_device"},
		{"start", func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"start_error=no_file"} }, plan.Op{Verb: plan.StartContainer, Container: "main"}, "RunContainerError", "no_file"},
		{"config", optional, plan.Op{Verb: plan.StartContainer, Container: "main"}, "CreateContainerConfigError", "image will run as root"},
		{"never pull", func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullNever }, plan.Op{Verb: plan.PullImage, Container: "main"}, "ErrImageNeverPull", "not present"},
		{"no image name", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "A@@" }, plan.Op{Verb: plan.PullImage, Container: "main"}, "InvalidImageName", "A@@"},
	} {
		t.Run("PL-15 "+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.change)
				b.must(plan.Op{Verb: plan.PrepareVolumes})
				b.must(plan.Op{Verb: plan.RunSandbox})
				if c.op.Verb == plan.StartContainer {
					b.must(plan.Op{Verb: plan.PullImage, Container: "main"})
				}
				err := b.Do(context.Background(), b.task(c.op))
				r, ok := err.(interface{ Reason() string })
				if !ok || r.Reason() != c.reason || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v (%T), want %s that says %q", err, err, c.reason, c.says)
				}
			})
		})
	}
}

// TestLastWords holds the termination message: the container's file, else, if its policy says so and it failed, the end of its
// log (PL-11).
func TestLastWords(t *testing.T) {
	logged := []string{"stdout=first", "stdout=last", "run_for=1s", "exit_code=1"}
	for _, c := range []struct {
		name   string
		policy corev1.TerminationMessagePolicy
		args   []string
		file   string
		want   string
	}{
		{"the file", corev1.TerminationMessageReadFile, logged, "goodbye", "goodbye"},
		{"no file, no word", corev1.TerminationMessageReadFile, logged, "", ""},
		{"the log", corev1.TerminationMessageFallbackToLogsOnError, logged, "", "first\nlast\n"},
		{"the file before the log", corev1.TerminationMessageFallbackToLogsOnError, logged, "goodbye", "goodbye"},
		{"no log after a success", corev1.TerminationMessageFallbackToLogsOnError, []string{"stdout=x", "run_for=1s"}, "", ""},
		{"what is no text", corev1.TerminationMessageReadFile, logged, "a\xff\xfeb", "a\uFFFDb"},
	} {
		t.Run("PL-11 "+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(p *corev1.Pod) {
					p.Spec.Containers[0].Args, p.Spec.Containers[0].TerminationMessagePolicy = c.args, c.policy
				})
				b.up()
				if c.file != "" {
					name, err := b.Volumes.TerminationLog("u1", "main", 0)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(name, []byte(c.file), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Second)
				if got := b.see().Containers[0]; !got.Exited() || got.Message != c.want {
					t.Errorf("got %+v, want message %q", got, c.want)
				}
			})
		})
	}
}

// TestTail holds the bounds of what is taken from a log: 80 lines, 2048 bytes, whatever the lines are like (PL-11).
func TestTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "0.log")
	entry := func(tag, text string) string {
		return "2026-01-02T03:04:05.000000006Z stdout " + tag + " " + text + "\n"
	}
	for name, c := range map[string]struct{ log, begins, ends string }{
		"short":               {entry("F", "a b") + entry("F", "c"), "a b\nc\n", "c\n"},
		"a line in parts":     {entry("P", "ab") + entry("F", "cd"), "abcd\n", "abcd\n"},
		"many lines":          {strings.Repeat(entry("F", "x"), 5000) + entry("F", "end"), "x\n", "x\nend\n"},
		"one endless line":    {strings.Repeat(entry("P", strings.Repeat("y", 16<<10)), 10) + entry("F", "z"), "y", "yz\n"},
		"not a log":           {"garbage\n\nmore garbage\n", "", ""},
		"empty":               {"", "", ""},
		"cut within a letter": {entry("F", strings.Repeat("ä", 3000)), "", "ä\n"},
	} {
		if err := os.WriteFile(file, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		got := tail(file)
		if !strings.HasPrefix(got, c.begins) || !strings.HasSuffix(got, c.ends) || len(got) > tailBytes || strings.Count(got, "\n") > tailLines {
			t.Errorf("PL-11 %s: %d bytes, %q … %q", name, len(got), got[:min(20, len(got))], got[max(0, len(got)-20):])
		}
	}
}

// TestContainerFacts holds what is read from the runtime's statuses.
func TestContainerFacts(t *testing.T) {
	base := &runtimeapi.ContainerStatus{Id: "c", Metadata: &runtimeapi.ContainerMetadata{Name: "main", Attempt: 2}, CreatedAt: 10, StartedAt: 20, FinishedAt: 30,
		Annotations: map[string]string{annotationImage: "img", annotationStreak: "4"}}
	for state, want := range map[runtimeapi.ContainerState]string{
		runtimeapi.ContainerState_CONTAINER_CREATED: "running false exited false lost false",
		runtimeapi.ContainerState_CONTAINER_RUNNING: "running true exited false lost false",
		runtimeapi.ContainerState_CONTAINER_EXITED:  "running false exited true lost false",
		runtimeapi.ContainerState_CONTAINER_UNKNOWN: "running false exited false lost true",
	} {
		base.State = state
		c := containerFacts(cri.ObservedContainer{SandboxID: "b", Status: base})
		if got := fmt.Sprintf("running %v exited %v lost %v", c.Running(), c.Exited(), c.Lost); got != want {
			t.Errorf("%v: %s, want %s", state, got, want)
		}
		if c.Streak != 4 || c.SpecImage != "img" || c.Attempt != 2 || c.SandboxID != "b" {
			t.Errorf("%v: %+v", state, c)
		}
	}
	base.State, base.StartedAt, base.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, 0, 0
	if c := containerFacts(cri.ObservedContainer{Status: base}); !c.Exited() {
		t.Errorf("one that ended without a time is not over: %+v", c)
	}
}

// FuzzTail: a log may hold anything.
func FuzzTail(f *testing.F) {
	f.Add([]byte("2026-01-02T03:04:05.000000006Z stdout F hello\n"))
	f.Add([]byte("a b c\nP P P P\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "0.log")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got := tail(file)
		if len(got) > tailBytes {
			t.Errorf("%d bytes", len(got))
		}
		if utf8.Valid(data) && strings.Count(got, "\n") > tailLines {
			t.Errorf("%d lines", strings.Count(got, "\n"))
		}
	})
}
