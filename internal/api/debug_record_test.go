// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/exec"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// finished waits until all records of a pod are finished, and returns them. They are finished beside the request.
func finished(t *testing.T, ns, pod string) []debugrun.DebugRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w,
		err := dynamicClient(t).Resource(debugrun.GroupVersion().WithResource(debugrun.Resource)).Namespace(ns).Watch(ctx, debugrun.OfPod(pod))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range w.ResultChan() {
		runs := recordsOf(t, ns, pod)
		if !slices.ContainsFunc(runs, func(r debugrun.DebugRun) bool { return r.Status.FinishedAt == nil }) {
			return runs
		}
	}
	t.Fatalf("records of pod %s are not finished", pod)
	return nil
}

// IX-01 IX-07 IX-08: a command from an image is handed to the node, and on record before it starts, with its exit code
// after it.
func TestImageExec(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	for _, way := range []string{"websocket", "spdy"} {
		t.Run(way, func(t *testing.T) {
			p := n.pod(t, ns, pod("p-"+way))
			out, err := execInto(t, adminConfig(t), way, ns, p.Name,
				"stdout=true&image=tools:1&container=main&writable=true&pullPolicy=Never&command=exit&command=7")
			var code exec.CodeExitError
			if !errors.As(err, &code) || code.Code != 7 || out != " runs [image tools:1 exit 7]" {
				t.Fatalf("%q, %v", out, err)
			}
			if !slices.Contains(n.requests(), "/imageExec/"+ns+"/"+p.Name+
				"?command=exit&command=7&container=main&image=tools%3A1&output=1&pullPolicy=Never&writable=1") {
				t.Errorf("the node was asked %v", n.requests())
			}
			runs := finished(t, ns, p.Name)
			if len(runs) != 1 {
				t.Fatalf("%d records", len(runs))
			}
			s, status := runs[0].Spec, runs[0].Status
			if s.Kind != debugrun.ImageExec || s.Image != "tools:1" || s.Target != "main" || !s.Writable ||
				s.User != "wherry-admin" ||
				s.Pod.UID != p.UID || !slices.Equal(s.Command, []string{"exit", "7"}) {
				t.Errorf("record %+v", s)
			}
			if status.StartedAt == nil || way == "websocket" && (status.ExitCode == nil || *status.ExitCode != 7) {
				t.Errorf("status %+v", status)
			}
			tainted := conditionOf(podNow(t, c, ns, p.Name))
			if tainted == nil || tainted.Reason != debugrun.TaintedByImageExec ||
				!strings.HasPrefix(tainted.Message, "image exec by wherry-admin ") ||
				strings.Contains(tainted.Message, "exit 7") {
				t.Errorf("condition %+v", tainted)
			}
			if said := waitForEvent(t, c, ns, p.Name,
				debugrun.EventImageExec); said != "wherry-admin runs exit 7 with image tools:1 in the pod" {
				t.Errorf("event %q", said)
			}
		})
	}
	t.Run("success is exit code 0, and the image's own command needs no words", func(t *testing.T) {
		n.pod(t, ns, pod("own"))
		if _, err := execInto(t, adminConfig(t), "websocket", ns, "own", "stdout=true&image=tools:1"); err != nil {
			t.Fatal(err)
		}
		if s := finished(t, ns, "own")[0].Status; s.ExitCode == nil || *s.ExitCode != 0 {
			t.Errorf("status %+v", s)
		}
	})
	t.Run("IX-09 a pod that has ended is no reason to refuse", func(t *testing.T) {
		p := n.pod(t, ns, pod("ended"))
		n.status(t, p, func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
		if _, err := execInto(t, adminConfig(t), "websocket", ns, "ended", "stdout=true&image=tools:1"); err != nil {
			t.Error(err)
		}
	})
}

// IX-07 IX-12 DC-17: what is refused leaves nothing behind: no record, no condition.
func TestImageExecRefusals(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	createPod(t, c, ns, pod("homeless"))
	for _, tc := range []struct {
		what, pod, query string
		code             int32
		words            string
	}{
		{"no image", "p", "image=&command=x", 400, "image is missing"},
		{"writable without image", "p", "writable=true&command=x", 400, "image is missing"},
		{"bad image", "p", "image=UPPER/:x", 400, "is not an image name"},
		{"pull policy", "p", "image=a&pullPolicy=Maybe", 400, "Always, IfNotPresent, Never"},
		{"container", "p", "image=a&container=nobody", 400, "container nobody is not valid for pod p"},
		{"no pod", "none", "image=a", 404, `pods "none" not found`},
		{"no node", "homeless", "image=a", 400, "does not have a host assigned"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			_, err := execInto(t, adminConfig(t), "websocket", ns, tc.pod, "stdout=true&"+tc.query)
			if s := statusOf(t, err); s.Code != tc.code || !strings.Contains(s.Message, tc.words) {
				t.Errorf("%+v", s)
			}
		})
	}
	for what, answer := range map[string]http.HandlerFunc{
		"the node cannot": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the runtime has no rootfs", http.StatusNotImplemented)
		},
		"the node does not know of it": http.NotFound,
	} {
		t.Run(what, func(t *testing.T) {
			n.answer("imageExec", answer)
			for _, way := range []string{"websocket", "spdy"} {
				_, err := execInto(t, adminConfig(t), way, ns, "p", "stdout=true&image=tools:1&command=x")
				if way == "spdy" {
					if err == nil || !strings.Contains(err.Error(), "not implemented") {
						t.Errorf("SPDY: %v", err)
					}
					continue
				}
				if s := statusOf(t, err); s.Code != http.StatusNotImplemented || s.Reason != "NotImplemented" ||
					!strings.Contains(s.Message, "not implemented: ") {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	if len(recordsOf(t, ns, "p")) > 0 || conditionOf(podNow(t, c, ns, "p")) != nil {
		t.Error("something was left behind")
	}
	t.Run("a refusal of the node's own is in the record", func(t *testing.T) {
		n.pod(t, ns, pod("q"))
		n.answer("imageExec", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "image tools:1 cannot be pulled", http.StatusBadGateway)
		})
		_, err := execInto(t, adminConfig(t), "spdy", ns, "q", "stdout=true&image=tools:1&command=x")
		if err == nil || !strings.Contains(err.Error(), "cannot be pulled") {
			t.Errorf("%v", err)
		}
		if s := finished(t, ns, "q")[0].Status; s.Reason != debugrun.Refused ||
			!strings.Contains(s.Message, "cannot be pulled") || s.ExitCode != nil || s.StartedAt != nil {
			t.Errorf("status %+v", s)
		}
	})
}

// IX-08: exec taints the pod before the command starts; the condition keeps its first time, says who came last, and
// survives what the node publishes. Exec without further parameters is otherwise as ever.
func TestTainted(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	p := n.pod(t, ns, pod("p"))
	var before *corev1.PodCondition
	n.answer("exec", func(w http.ResponseWriter, r *http.Request) {
		now, err := c.CoreV1().Pods(ns).Get(r.Context(), "p", metav1.GetOptions{})
		if err == nil {
			before = conditionOf(now)
		}
		http.Error(w, "not now", http.StatusTeapot)
	})
	if _, err := execInto(t, adminConfig(t), "spdy", ns, "p", "stdout=true&command=ls&command=-l"); err == nil {
		t.Fatal("the node refused")
	}
	if before == nil || before.Reason != debugrun.TaintedByExec ||
		!strings.HasPrefix(before.Message, "exec by wherry-admin into main at ") ||
		strings.Contains(before.Message, "ls -l") {
		t.Fatalf("before the command: %+v", before)
	}
	n.status(t, p, func(s *corev1.PodStatus) { // a node that has not heard of it
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
	after := podNow(t, c, ns, "p")
	if got := conditionOf(after); got == nil || *got != *before || len(after.Status.Conditions) != 2 {
		t.Errorf("after the node's status: %+v", after.Status.Conditions)
	}
	n.status(t, p, func(s *corev1.PodStatus) { conditionOf(&corev1.Pod{Status: *s}).Message = "nobody was here" })
	if got := conditionOf(podNow(t, c, ns, "p")); *got != *before {
		t.Errorf("the node has changed it: %+v", got)
	}
	n.answer("exec", nil)
	if out, err := execInto(t, adminConfig(t), "websocket", ns, "p", "stdout=true&command=id"); err != nil ||
		out != "main runs [id]" {
		t.Fatalf("%q, %v", out, err)
	}
	patch := []byte(`{"spec":{"ephemeralContainers":[{"name":"mine","image":"tools:1"}]}}`)
	if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "p", types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "ephemeralcontainers"); err != nil {
		t.Fatal(err)
	}
	last := waitForTaint(t, ns, "p", "debug container mine by wherry-admin at ")
	if last.LastTransitionTime != before.LastTransitionTime {
		t.Errorf("tainted since %v, was %v", last.LastTransitionTime, before.LastTransitionTime)
	}
	if runs := recordsOf(t, ns, "p"); len(runs) != 1 || runs[0].Spec.Container != "mine" {
		t.Errorf("a plain exec has a record: %+v", runs)
	}
}

// waitForTaint waits for the word of a later entry, which is written beside the request.
func waitForTaint(t *testing.T, ns, name, prefix string) *corev1.PodCondition {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := client(t).CoreV1().Pods(ns).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if p, ok := e.Object.(*corev1.Pod); ok {
			if c := conditionOf(p); c != nil && strings.HasPrefix(c.Message, prefix) {
				return c
			}
		}
	}
	t.Fatalf("no condition that begins with %q", prefix)
	return nil
}

// DC-03 IX-08: debug containers that kubectl debug adds through the subresource are on record too; a dry run is not.
func TestEphemeralContainersAreRecorded(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	patch := []byte(`{"spec":{"ephemeralContainers":[{"name":"mine","image":"tools:1","targetContainerName":"main","args":["-x"]}]}}`)
	add := func(o metav1.PatchOptions) {
		t.Helper()
		if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "p", types.StrategicMergePatchType, patch, o,
			"ephemeralcontainers"); err != nil {
			t.Fatal(err)
		}
	}
	add(metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if len(recordsOf(t, ns, "p")) > 0 {
		t.Error("a dry run is on record")
	}
	add(metav1.PatchOptions{})
	runs := recordsOf(t, ns, "p")
	if len(runs) != 1 || runs[0].Spec.Container != "mine" || runs[0].Spec.Target != "main" ||
		!slices.Equal(runs[0].Spec.Args, []string{"-x"}) {
		t.Errorf("records %+v", runs)
	}
	if got := conditionOf(podNow(t, c, ns, "p")); got == nil || got.Reason != debugrun.TaintedByDebugContainer ||
		strings.Contains(got.Message, "-x") {
		t.Errorf("condition %+v", got)
	}
	add(metav1.PatchOptions{}) // the same again changes nothing
	if runs := recordsOf(t, ns, "p"); len(runs) != 1 {
		t.Errorf("%d records of one container", len(runs))
	}
}

// DC-08: records are read, listed by pod, shown as a table, explained and deleted by clients, and written by nobody but
// the server. ATTACK A27.
func TestDebugRuns(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	if _, err := execInto(t, adminConfig(t), "spdy", ns, "p", session); err != nil {
		t.Fatal(err)
	}
	runs := recordsOf(t, ns, "p")
	if len(runs) != 1 {
		t.Fatalf("%d records", len(runs))
	}
	ri := dynamicClient(t).Resource(debugrun.GroupVersion().WithResource(debugrun.Resource)).Namespace(ns)
	got, err := ri.Get(t.Context(), runs[0].Name, metav1.GetOptions{})
	if err != nil || got.GetKind() != "DebugRun" {
		t.Fatalf("%v, %v", got, err)
	}
	refused := func(what string, err error, is func(error) bool) {
		if !is(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	forged := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "debug.wherry.dev/v1", "kind": "DebugRun",
		"metadata": map[string]any{"name": "forged"}, "spec": got.Object["spec"]}}
	_, err = ri.Create(t.Context(), forged, metav1.CreateOptions{})
	refused("create", err, apierrors.IsMethodNotSupported)
	_, err = ri.Update(t.Context(), got, metav1.UpdateOptions{})
	refused("update", err, apierrors.IsMethodNotSupported)
	_, err = ri.Patch(t.Context(), got.GetName(), types.MergePatchType, []byte(`{"spec":{"user":"somebody"}}`),
		metav1.PatchOptions{})
	refused("patch", err, apierrors.IsMethodNotSupported)
	_, err = ri.UpdateStatus(t.Context(), got, metav1.UpdateOptions{})
	refused("update of the status", err, apierrors.IsForbidden)
	_, err = ri.Patch(t.Context(), got.GetName(), types.MergePatchType, []byte(`{"status":{"exitCode":0}}`),
		metav1.PatchOptions{}, "status")
	refused("patch of the status", err, apierrors.IsForbidden)

	own, err := debugrun.NewClient(shared.srv.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	run := runs[0].DeepCopy()
	run.Status.Reason, run.Spec.User = "Tested", "somebody"
	if out, err := own.UpdateStatus(t.Context(), run); err != nil || out.Status.Reason != "Tested" ||
		out.Spec.User != "wherry-admin" {
		t.Errorf("the server's own update: %+v, %v", out, err)
	}
	// A client that would take protobuf gets what there is.
	for path, want := range map[string]string{"/apis/debug.wherry.dev/v1/namespaces/" + ns +
		"/debugruns": `"kind":"DebugRunList"`, "/api/v1/namespaces/" + ns + "/pods/p/debug": `"kind":"DebugRunList"`} {
		data, err := c.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept",
			"application/vnd.kubernetes.protobuf,application/json").DoRaw(t.Context())
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %s, %v", path, data, err)
		}
	}
	for _, tc := range []struct{ command, want string }{
		{"get debugruns", "NAME POD KIND CONTAINER IMAGE TARGET USER STARTED EXIT " + run.Name +
			" p EphemeralContainer debug tools:1 main wherry-admin <none> Tested"},
		{"explain debugruns.spec.user", "Name of the user who asked for it."},
		{"get debugruns --field-selector spec.pod.name=other", ""},
		{"get --raw /api/v1/namespaces/" + ns + "/pods/p/debug", `"kind":"DebugRunList"`},
		{"delete debugrun " + run.Name, "deleted"},
	} {
		if out := kubectl(t, "", append([]string{"--namespace", ns},
			strings.Fields(tc.command)...)...); !strings.Contains(strings.Join(strings.Fields(out), " "), tc.want) {
			t.Errorf("kubectl %s: %s", tc.command, out)
		}
	}
	if runs := recordsOf(t, ns, "p"); len(runs) > 0 {
		t.Errorf("%d records after the delete", len(runs))
	}
}

// EC-23: what is done again and again is one event that counts, and is kept as long as any; what is another pod's or
// another container's is its own.
func TestDebugEventsCount(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	n.pod(t, ns, pod("other"))
	const again = 3
	for range again {
		if _, err := execInto(t, adminConfig(t), "spdy", ns, "p", session); err != nil {
			t.Fatal(err)
		}
		if err := c.CoreV1().RESTClient().Delete().AbsPath("/api/v1/namespaces/" + ns +
			"/pods/p/debug/debug").Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := execInto(t, adminConfig(t), "spdy", ns, "other", session); err != nil {
		t.Fatal(err)
	}
	w, err := c.CoreV1().Events(ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "reason=" +
		debugrun.EventDebugContainerAdded})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	counts := map[string]int32{}
	for counts["p"] < again || counts["other"] < 1 {
		select {
		case e := <-w.ResultChan():
			if ev, ok := e.Object.(*corev1.Event); ok {
				counts[ev.InvolvedObject.Name] = ev.Count
			}
		case <-time.After(time.Minute):
			t.Fatalf("counted %v", counts)
		}
	}
	list, err := c.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" +
		debugrun.EventDebugContainerAdded})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d events, %v", len(list.Items), err)
	}
	for _, e := range list.Items {
		if e.LastTimestamp.Before(&e.FirstTimestamp) {
			t.Errorf("%+v", e)
		}
	}
}
