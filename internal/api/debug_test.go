// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/debugrun"
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
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w, err := c.CoreV1().Events(ns).Watch(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod + ",reason=" + reason})
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

// DC-03 DC-04 DC-14 DC-15 IX-08: one request makes the debug container and attaches to it; it is in the spec as if it had been
// added by pods/ephemeralcontainers, and on record with who did it.
func TestDebugSession(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	for _, way := range []string{"websocket", "spdy"} {
		t.Run(way, func(t *testing.T) {
			p := n.pod(t, ns, pod("p-"+way))
			out, err := execInto(t, adminConfig(t), way, ns, p.Name, session+"&tty=true&stdin=true&command=sh&command=-i&ephemeralContainerTTL=30m&ephemeralContainerPullPolicy=Never")
			if err != nil || out != "debug in "+p.Name+" tty=true" {
				t.Fatalf("%q, %v", out, err)
			}
			now := podNow(t, c, ns, p.Name)
			e := now.Spec.EphemeralContainers[0]
			if e.Name != "debug" || e.Image != "tools:1" || !slices.Equal(e.Command, []string{"sh", "-i"}) || !e.TTY || !e.Stdin || e.ImagePullPolicy != corev1.PullNever {
				t.Errorf("container %+v", e)
			}
			if e.TargetContainerName != "main" || !slices.Equal(e.SecurityContext.Capabilities.Add, []corev1.Capability{"SYS_PTRACE"}) {
				t.Errorf("target %q, security %+v", e.TargetContainerName, e.SecurityContext)
			}
			if stop := podspec.DebugRunsOf(now)["debug"].StopAt; stop == nil || time.Until(stop.Time) < 25*time.Minute {
				t.Errorf("to be stopped at %v", stop)
			}
			if now.Generation != p.Generation+1 {
				t.Errorf("generation %d after %d", now.Generation, p.Generation)
			}
			tainted := conditionOf(now)
			if tainted == nil || tainted.Status != corev1.ConditionTrue || tainted.Reason != debugrun.TaintedByDebugContainer ||
				!strings.HasPrefix(tainted.Message, "debug container debug by wherry-admin with tools:1 at ") || !strings.HasSuffix(tainted.Message, ": sh -i") {
				t.Errorf("condition %+v", tainted)
			}
			runs := recordsOf(t, ns, p.Name)
			if len(runs) != 1 {
				t.Fatalf("%d records", len(runs))
			}
			s := runs[0].Spec
			if s.Kind != debugrun.EphemeralContainer || s.Container != "debug" || s.User != "wherry-admin" || s.Image != "tools:1" || s.Target != "main" ||
				s.Pod != (debugrun.PodReference{Name: p.Name, UID: p.UID, Node: n.name}) || !slices.Equal(s.Command, []string{"sh", "-i"}) {
				t.Errorf("record %+v", s)
			}
			if said := waitForEvent(t, c, ns, p.Name, debugrun.EventDebugContainerAdded); said != "wherry-admin added debug container debug with image tools:1" {
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

// DC-03 DC-05 DC-13 EC-05 EC-06 EC-07 EC-09: what cannot be is refused with one clear message, before the connection is
// upgraded, and at once.
func TestDebugRefusals(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	ended := n.pod(t, ns, pod("ended"))
	n.status(t, ended, func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
	crashing := n.pod(t, ns, pod("crashing"))
	n.status(t, crashing, func(s *corev1.PodStatus) {
		s.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	})
	createPod(t, c, ns, pod("homeless"))
	static := pod("static")
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	static.Spec.NodeName = n.name
	createPod(t, c, ns, static)
	leaving := n.pod(t, ns, pod("leaving"))
	if err := c.CoreV1().Pods(ns).Delete(t.Context(), leaving.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	const name, image = "ephemeralContainerName", "ephemeralContainerImage"
	for _, tc := range []struct {
		what, pod, query string
		code             int32
		reason           metav1.StatusReason
		words, exit      string
	}{
		{"DC-03 name without image", "p", name + "=a", 400, "BadRequest", "must both be given, or neither", ""},
		{"DC-03 image without name", "p", image + "=tools:1", 400, "BadRequest", "must both be given, or neither", ""},
		{"DC-03 empty name", "p", name + "=&" + image + "=tools:1", 400, "BadRequest", "must both be given, or neither", ""},
		{"DC-03 option without either", "p", "ephemeralContainerTTL=1m", 400, "BadRequest", "must both be given, or neither", ""},
		{"and image exec", "p", name + "=a&" + image + "=tools:1&image=x", 400, "BadRequest", "mean different things", ""},
		{"another container", "p", name + "=a&" + image + "=tools:1&container=main", 400, "BadRequest", "leave the parameter container out", ""},
		{"DC-14 profile", "p", name + "=a&" + image + "=tools:1&ephemeralContainerProfile=root", 400, "BadRequest", "choose one of general, baseline", ""},
		{"pull policy", "p", name + "=a&" + image + "=tools:1&ephemeralContainerPullPolicy=Maybe", 400, "BadRequest", "Always, IfNotPresent, Never", ""},
		{"time", "p", name + "=a&" + image + "=tools:1&ephemeralContainerTTL=soon", 400, "BadRequest", "not a duration", ""},
		{"no time", "p", name + "=a&" + image + "=tools:1&ephemeralContainerTTL=0s", 400, "BadRequest", "not a duration above zero", ""},
		{"no pod", "none", name + "=a&" + image + "=tools:1", 404, "NotFound", `pods "none" not found`, ""},
		{"bad name", "p", name + "=A_b&" + image + "=tools:1", 422, "Invalid", "spec.ephemeralContainers[0].name", ""},
		{"EC-07 unknown target", "p", name + "=a&" + image + "=tools:1&ephemeralContainerTarget=nobody", 422, "Invalid", "targetContainerName", ""},
		{"PID-07 target that does not run", "crashing", name + "=a&" + image + "=tools:1&ephemeralContainerTarget=main", 409, "Conflict", `target container "main" of pod crashing is not running (CrashLoopBackOff)`, ""},
		{"DC-05 name of a main container", "p", name + "=main&" + image + "=tools:1", 409, "AlreadyExists", `container name "main" is taken by spec.containers[0]`, ""},
		{"ended", "ended", name + "=a&" + image + "=tools:1", 409, "Conflict", "has ended (Failed)", ""},
		{"deleted", "leaving", name + "=a&" + image + "=tools:1", 409, "Conflict", "is being deleted", ""},
		{"not on a node", "homeless", name + "=a&" + image + "=tools:1", 409, "Conflict", "does not have a host assigned", ""},
		{"EC-09 static", "static", name + "=a&" + image + "=tools:1", 409, "Conflict", "is a static pod", ""},
		{"no such image", "p", name + "=pull&" + image + "=missing:1", 400, "ErrImagePull", `debug container "pull" of pod p cannot start: ErrImagePull: no such host`, ""},
		{"runAsNonRoot", "p", name + "=config&" + image + "=rooty:1", 400, "CreateContainerConfigError", "image will run as root", ""},
		{"DC-13 image not allowed", "p", name + "=unlisted&" + image + "=unlisted:1", 400, "ImageNotAllowed", "debug images of example.com only", ""},
		{"no shell", "p", name + "=shellless&" + image + "=shellless:1", 400, "StartError", "executable file not found", "127"},
		{"no command", "p", name + "=locked&" + image + "=locked:1", 400, "StartError", "permission denied", "126"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			_, err := execInto(t, adminConfig(t), "websocket", ns, tc.pod, "stdout=true&"+tc.query)
			status := statusOf(t, err)
			if status.Code != tc.code || status.Reason != tc.reason || !strings.Contains(status.Message, tc.words) {
				t.Errorf("%d %s %q", status.Code, status.Reason, status.Message)
			}
			exit := ""
			if status.Details != nil && len(status.Details.Causes) > 0 && status.Details.Causes[0].Type == debugrun.CauseExitCode {
				exit = status.Details.Causes[0].Message
			}
			if exit != tc.exit {
				t.Errorf("exit code %q in the details", exit)
			}
			if len(podNow(t, c, ns, "p").Spec.EphemeralContainers) > 0 && tc.code == 400 && tc.reason != "BadRequest" {
				return // the name is in use now
			}
			if _, err := execInto(t, adminConfig(t), "spdy", ns, tc.pod, "stdout=true&"+tc.query); err == nil || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("SPDY: %v", err)
			}
		})
	}
	t.Run("no streams", func(t *testing.T) {
		_, err := execInto(t, adminConfig(t), "websocket", ns, "p", strings.TrimPrefix(session, "stdout=true&"))
		if s := statusOf(t, err); s.Code != 400 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("one that could not start leaves its record and is stopped", func(t *testing.T) {
		runs := recordsOf(t, ns, "p")
		if !slices.ContainsFunc(runs, func(r debugrun.DebugRun) bool { return r.Spec.Container == "pull" }) {
			t.Errorf("no record of it among %d", len(runs))
		}
		stopped(t, c, ns, "p", "pull")
		if _, err := execInto(t, adminConfig(t), "spdy", ns, "p", strings.Replace(session, "=debug", "=pull", 1)); err != nil {
			t.Errorf("its name cannot be used again: %v", err)
		}
	})
	t.Run("DC-15 a container that crashes is no target unless asked for", func(t *testing.T) {
		if _, err := execInto(t, adminConfig(t), "spdy", ns, "crashing", session); err != nil {
			t.Fatal(err)
		}
		if e := podNow(t, c, ns, "crashing").Spec.EphemeralContainers[0]; e.TargetContainerName != "" {
			t.Errorf("target %q", e.TargetContainerName)
		}
	})
}

// stopped waits until a debug container has ended.
func stopped(t *testing.T, c kubernetes.Interface, ns, pod, container string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
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
		putState(s, container, run, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", StartedAt: now, FinishedAt: now}})
	})
}

// DC-05 DC-06 EC-04: the name of a debug container that runs is taken; that of one that has ended is used again, by exec++ only.
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
	if s := statusOf(t, again("tools:2")); s.Code != 409 || s.Reason != metav1.StatusReasonAlreadyExists || !strings.Contains(s.Message, "is running: attach to it, stop it") {
		t.Errorf("%+v", s)
	}
	for run := range 3 {
		end(t, n, p, "debug", run, int32(run))
		now := podNow(t, c, ns, "p")
		now.Spec.EphemeralContainers[0].Image = "sneaked:1"
		if _, err := c.CoreV1().Pods(ns).UpdateEphemeralContainers(t.Context(), "p", now, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("the subresource changed an entry: %v", err)
		}
		if err := again(fmt.Sprintf("tools:%d", run+2)); err != nil {
			t.Fatal(err)
		}
		now = podNow(t, c, ns, "p")
		if len(now.Spec.EphemeralContainers) != 1 || now.Spec.EphemeralContainers[0].Image != fmt.Sprintf("tools:%d", run+2) || podspec.DebugRunsOf(now)["debug"].Run != run+1 {
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

// DC-05 EC-08: of 20 clients that want one name at the same time one gets it, also where the name is used again; with 20
// different names all get in, and none is lost.
func TestDebugRaces(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	p := n.pod(t, ns, pod("p"))
	race := func(name func(i int) string) (won int) {
		errs := make([]error, 20)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				_, errs[i] = execInto(t, adminConfig(t), "websocket", ns, "p", strings.Replace(session, "=debug", "="+name(i), 1))
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

// DC-08: a debug container is stopped by DELETE below pods/debug, its record stays; GET lists the runs.
func TestDebugStop(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	path := "/api/v1/namespaces/" + ns + "/pods/p/debug"
	remove := func(path string) error {
		return c.CoreV1().RESTClient().Delete().AbsPath(path).Do(t.Context()).Error()
	}
	if err := remove(path + "/debug"); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `pod p has no debug container "debug"`) {
		t.Errorf("of none: %v", err)
	}
	if _, err := execInto(t, adminConfig(t), "spdy", ns, "p", session); err != nil {
		t.Fatal(err)
	}
	if err := remove(path + "/debug"); err != nil {
		t.Fatal(err)
	}
	if s := podspec.DebugStateOf(podNow(t, c, ns, "p"), "debug"); s.Phase != podspec.DebugEnded || s.Terminated.ExitCode != 143 {
		t.Errorf("answered before it was stopped: %+v", s)
	}
	if err := remove(path + "/debug"); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "has ended already: exit code 143") {
		t.Errorf("again: %v", err)
	}
	list := func() (runs debugrun.DebugRunList) {
		data, err := c.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &runs); err != nil {
			t.Fatal(err)
		}
		return runs
	}
	if runs := list(); runs.Kind != "DebugRunList" || runs.APIVersion != "debug.wherry.dev/v1" || len(runs.Items) != 1 || runs.Items[0].Spec.Container != "debug" {
		t.Errorf("runs %+v", runs)
	}
	if err := c.CoreV1().Pods(ns).Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	if runs := list(); len(runs.Items) != 1 {
		t.Errorf("%d records after the pod's end", len(runs.Items))
	}
	if _, err := c.CoreV1().RESTClient().Get().AbsPath(strings.Replace(path, "/p/", "/q/", 1)).DoRaw(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("runs of no pod: %v", err)
	}
	n.pod(t, ns, pod("stubborn"))
	if _, err := execInto(t, adminConfig(t), "spdy", ns, "stubborn", strings.Replace(session, "tools:1", stubborn, 1)); err != nil {
		t.Fatal(err)
	}
	err := c.CoreV1().RESTClient().Delete().AbsPath(strings.Replace(path, "/p/", "/stubborn/", 1)+"/debug").Param("timeout", "2s").Do(t.Context()).Error()
	if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "was told to stop, and has not ended yet") {
		t.Errorf("of one that does not stop: %v", err)
	}
	if err := remove(path); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("DELETE of the list: %v", err)
	}
}

// DC-06: only the API server writes what is wanted of debug containers.
func TestDebugAnnotation(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	made := pod("p")
	made.Annotations = map[string]string{podspec.DebugAnnotation: `{"debug":{"run":7}}`, "kept": "yes"}
	p := n.pod(t, ns, made)
	if _, ok := p.Annotations[podspec.DebugAnnotation]; ok || p.Annotations["kept"] != "yes" {
		t.Errorf("a new pod has %v", p.Annotations)
	}
	if _, err := execInto(t, adminConfig(t), "spdy", ns, "p", session+"&ephemeralContainerTTL=1h"); err != nil {
		t.Fatal(err)
	}
	stored := podNow(t, c, ns, "p").Annotations[podspec.DebugAnnotation]
	if stored == "" {
		t.Fatal("nothing is stored")
	}
	for name, value := range map[string]string{"changed": `"{}"`, "removed": "null"} {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, podspec.DebugAnnotation, value)
		if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "p", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "is kept by the API server") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "p", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			t.Errorf("%s by a status: %v", name, err)
		}
		if got := podNow(t, c, ns, "p").Annotations[podspec.DebugAnnotation]; got != stored {
			t.Errorf("%s: %s, was %s", name, got, stored)
		}
	}
	if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "p", types.MergePatchType, []byte(`{"metadata":{"annotations":{"other":"1"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("another annotation: %v", err)
	}
}

// DC-03 IX-01: who asks for a session without asking for streams is refused, and nothing is made.
func TestDebugNeedsUpgrade(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	for _, query := range []string{session, "stdout=true&image=tools:1&command=x"} {
		data, err := c.CoreV1().RESTClient().Post().RequestURI("/api/v1/namespaces/" + ns + "/pods/p/exec?" + query).DoRaw(t.Context())
		if !apierrors.IsBadRequest(err) || !strings.Contains(string(data), "Upgrade request required") {
			t.Errorf("%s, %v", data, err)
		}
	}
	if p := podNow(t, c, ns, "p"); len(p.Spec.EphemeralContainers) > 0 || conditionOf(p) != nil || len(recordsOf(t, ns, "p")) > 0 {
		t.Error("something was made all the same")
	}
}

// EC-20 IX-07: who has no right to it is refused before anything is made.
func TestDebugForbidden(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	jane := adminConfig(t)
	jane.TLSClientConfig.CertData, jane.TLSClientConfig.KeyData, jane.BearerToken = nil, nil, "jane-token"
	for _, query := range []string{session, "stdout=true&image=tools:1&command=x"} {
		_, err := execInto(t, jane, "websocket", ns, "p", query)
		if s := statusOf(t, err); s.Code != http.StatusForbidden {
			t.Errorf("%+v", s)
		}
		if _, err := execInto(t, jane, "spdy", ns, "p", query); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("SPDY: %v", err)
		}
	}
	if p := podNow(t, c, ns, "p"); len(p.Spec.EphemeralContainers) > 0 || conditionOf(p) != nil || len(recordsOf(t, ns, "p")) > 0 {
		t.Error("something was made all the same")
	}
}
