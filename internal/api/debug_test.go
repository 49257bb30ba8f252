// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

const session = "stdout=true&ephemeralContainerName=debug&ephemeralContainerImage=tools:1"

func recordsOf(t *testing.T, ns, pod string) []debugrun.DebugRun {
	t.Helper()
	c, err := debugrun.NewClient(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.List(t.Context(), ns, debugrun.OfPod(pod))
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func podNow(t *testing.T, c kubernetes.Interface, ns, name string) *corev1.Pod {
	t.Helper()
	p, err := c.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func conditionOf(p *corev1.Pod) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == debugrun.Tainted })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}

// waitForEvent returns the message of a pod's event with a reason. Events are written beside the request.
func waitForEvent(t *testing.T, c kubernetes.Interface, ns, pod, reason string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := c.CoreV1().Events(ns).Watch(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod +
		",reason=" + reason})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if ev, ok := e.Object.(*corev1.Event); ok {
			return ev.Message
		}
	}
	t.Fatalf("no event %s of pod %s", reason, pod)
	return ""
}

// statusOf is the Status that refused a stream, and fails the test if it was not refused with one before the upgrade.
func statusOf(t *testing.T, err error) metav1.Status {
	t.Helper()
	var upgrade *httpstream.UpgradeFailureError
	if errors.As(err, &upgrade) {
		err = upgrade.Cause
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("not a Status before the upgrade: %T %v", err, err)
	}
	return status.ErrStatus
}

// DC-03 DC-04 DC-14 DC-15 IX-08: one request makes the debug container and attaches to it; it is in the spec as if it
// had been added by pods/ephemeralcontainers, and on record with who did it.
func TestDebugSession(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	for _, way := range []string{"websocket", "spdy"} {
		t.Run(way, func(t *testing.T) {
			p := n.pod(t, ns, pod("p-"+way))
			out, err := execInto(t, adminConfig(t), way, ns, p.Name,
				session+
					"&tty=true&stdin=true&command=sh&command=-i&ephemeralContainerRequest=mine&ephemeralContainerTTL=30m&ephemeralContainerPullPolicy=Never")
			if err != nil || out != "debug in "+p.Name+" tty=true" {
				t.Fatalf("%q, %v", out, err)
			}
			now := podNow(t, c, ns, p.Name)
			e := now.Spec.EphemeralContainers[0]
			if e.Name != "debug" || e.Image != "tools:1" || !slices.Equal(e.Command, []string{"sh", "-i"}) || !e.TTY ||
				!e.Stdin || e.ImagePullPolicy != corev1.PullNever {
				t.Errorf("container %+v", e)
			}
			if e.TargetContainerName != "main" || !slices.Equal(e.SecurityContext.Capabilities.Add,
				[]corev1.Capability{"SYS_PTRACE"}) {
				t.Errorf("target %q, security %+v", e.TargetContainerName, e.SecurityContext)
			}
			if want := podspec.DebugRunsOf(now)["debug"]; want.TTL == nil || want.TTL.Duration != 30*time.Minute ||
				time.Until(want.StopAt.Time) < 35*time.Minute || time.Until(want.StopAt.Time) > time.Hour {
				t.Errorf("DC-08 to be stopped after %v, at the latest at %v", want.TTL, want.StopAt)
			}
			if own := podspec.DebugRunsOf(now)["debug"].Request; own != "mine" {
				t.Errorf("DC-06 asked for as %q", own)
			}
			if now.Generation != p.Generation+1 {
				t.Errorf("generation %d after %d", now.Generation, p.Generation)
			}
			tainted := conditionOf(now)
			if tainted == nil || tainted.Status != corev1.ConditionTrue ||
				tainted.Reason != debugrun.TaintedByDebugContainer ||
				!strings.HasPrefix(tainted.Message, "debug container debug by wherry-admin at ") ||
				strings.Contains(tainted.Message, "sh -i") {
				t.Errorf("condition %+v", tainted)
			}
			runs := recordsOf(t, ns, p.Name)
			if len(runs) != 1 {
				t.Fatalf("%d records", len(runs))
			}
			s := runs[0].Spec
			if s.Kind != debugrun.EphemeralContainer || s.Container != "debug" || s.User != "wherry-admin" ||
				s.Image != "tools:1" || s.Target != "main" ||
				s.Pod != (debugrun.PodReference{Name: p.Name, UID: p.UID, Node: n.name}) ||
				!slices.Equal(s.Command, []string{"sh", "-i"}) {
				t.Errorf("record %+v", s)
			}
			if said := waitForEvent(t, c, ns, p.Name,
				debugrun.EventDebugContainerAdded); said != "wherry-admin added debug container debug with image tools:1" {
				t.Errorf("event %q", said)
			}
		})
	}
	t.Run("one that ends at once is no error", func(t *testing.T) {
		p := n.pod(t, ns, pod("flash"))
		out, err := execInto(t, adminConfig(t), "spdy", ns, p.Name, strings.Replace(session, "tools", "flash", 1))
		if err != nil || out != "debug in flash tty=false" {
			t.Errorf("%q, %v", out, err)
		}
	})
	t.Run("DC-15 no target is chosen for the client where there is no one", func(t *testing.T) {
		two := pod("two")
		two.Spec.Containers = append(two.Spec.Containers, corev1.Container{Name: "second", Image: "x"})
		sharing := pod("sharing")
		sharing.Spec.ShareProcessNamespace = ptr.To(true)
		for _, p := range []*corev1.Pod{two, sharing} {
			p = n.pod(t, ns, p)
			if _, err := execInto(t, adminConfig(t), "spdy", ns, p.Name, session); err != nil {
				t.Fatal(err)
			}
			if target := podNow(t, c, ns, p.Name).Spec.EphemeralContainers[0].TargetContainerName; target != "" {
				t.Errorf("%s: target %q", p.Name, target)
			}
		}
	})
}

// stopped waits until a debug container has ended.
func stopped(t *testing.T, c kubernetes.Interface, ns, pod, container string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := c.CoreV1().Pods(ns).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + pod})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if p, ok := e.Object.(*corev1.Pod); ok && podspec.DebugStateOf(p, container).Phase == podspec.DebugEnded {
			return
		}
	}
	t.Fatalf("debug container %s of pod %s does not end", container, pod)
}

func end(t *testing.T, n *debugNode, p *corev1.Pod, container string, run int, code int32) {
	t.Helper()
	now := metav1.Now()
	n.status(t, p, func(s *corev1.PodStatus) {
		putState(s, container, run, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code,
			Reason: "Error", StartedAt: now, FinishedAt: now}})
	})
}

// DC-05 DC-06 EC-04: the name of a debug container that runs is taken; that of one that has ended is used again, by
// exec++ only.
func TestDebugNames(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	p := n.pod(t, ns, pod("p"))
	again := func(image string) error {
		_, err := execInto(t, adminConfig(t), "websocket", ns, "p", strings.Replace(session, "tools:1", image, 1))
		return err
	}
	if err := again("tools:1"); err != nil {
		t.Fatal(err)
	}
	if s := statusOf(t, again("tools:2")); s.Code != 409 || s.Reason != metav1.StatusReasonAlreadyExists ||
		!strings.Contains(s.Message, "is running: attach to it, stop it") {
		t.Errorf("%+v", s)
	}
	for run := range 3 {
		end(t, n, p, "debug", run, int32(run))
		now := podNow(t, c, ns, "p")
		now.Spec.EphemeralContainers[0].Image = "sneaked:1"
		if _, err := c.CoreV1().Pods(ns).UpdateEphemeralContainers(t.Context(), "p", now,
			metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("the subresource changed an entry: %v", err)
		}
		if err := again(fmt.Sprintf("tools:%d", run+2)); err != nil {
			t.Fatal(err)
		}
		now = podNow(t, c, ns, "p")
		if len(now.Spec.EphemeralContainers) != 1 || now.Spec.EphemeralContainers[0].Image != fmt.Sprintf("tools:%d",
			run+2) || podspec.DebugRunsOf(now)["debug"].Run != run+1 {
			t.Errorf("run %d: %+v, %v", run+1, now.Spec.EphemeralContainers, now.Annotations)
		}
	}
	runs := recordsOf(t, ns, "p")
	var seen []string
	for _, r := range runs {
		seen = append(seen, fmt.Sprint(r.Spec.Run, " ", r.Spec.Image))
	}
	slices.Sort(seen)
	if want := []string{"0 tools:1", "1 tools:2", "2 tools:3", "3 tools:4"}; !slices.Equal(seen, want) {
		t.Errorf("records %v, want %v", seen, want)
	}
}

// DC-05 EC-08: of 20 clients that want one name at the same time one gets it, also where the name is used again; with
// 20 different names all get in, and none is lost.
func TestDebugRaces(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	p := n.pod(t, ns, pod("p"))
	race := func(name func(i int) string) (won int) {
		errs := make([]error, 20)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				_, errs[i] = execInto(t, adminConfig(t), "websocket", ns, "p",
					strings.Replace(session, "=debug", "="+name(i), 1))
			})
		}
		all.Wait()
		for _, err := range errs {
			if err == nil {
				won++
			} else if s := statusOf(t, err); s.Code != 409 {
				t.Errorf("%+v", s)
			}
		}
		return won
	}
	same := func(int) string { return "same" }
	if won := race(same); won != 1 {
		t.Errorf("%d clients made the same container", won)
	}
	end(t, n, p, "same", 0, 0)
	if won := race(same); won != 1 {
		t.Errorf("%d clients used the name again", won)
	}
	if won := race(func(i int) string { return fmt.Sprintf("mine-%d", i) }); won != 20 {
		t.Errorf("%d of 20 with names of their own got in", won)
	}
	now := podNow(t, c, ns, "p")
	if len(now.Spec.EphemeralContainers) != 21 || len(recordsOf(t, ns, "p")) != 22 {
		t.Errorf("%d containers, %d records", len(now.Spec.EphemeralContainers), len(recordsOf(t, ns, "p")))
	}
}
