// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

// DC-08: a debug container is stopped by DELETE below pods/debug, its record stays; GET lists the runs.
func TestDebugStop(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	path := "/api/v1/namespaces/" + ns + "/pods/p/debug"
	remove := func(path string) error {
		return c.CoreV1().RESTClient().Delete().AbsPath(path).Do(t.Context()).Error()
	}
	if err := remove(path + "/debug"); !apierrors.IsNotFound(err) ||
		!strings.Contains(err.Error(), `pod p has no debug container "debug"`) {
		t.Errorf("of none: %v", err)
	}
	if _, err := execInto(t, adminConfig(t), "spdy", ns, "p", session); err != nil {
		t.Fatal(err)
	}
	if err := remove(path + "/debug"); err != nil {
		t.Fatal(err)
	}
	if s := podspec.DebugStateOf(podNow(t, c, ns, "p"), "debug"); s.Phase != podspec.DebugEnded ||
		s.Terminated.ExitCode != 143 {
		t.Errorf("answered before it was stopped: %+v", s)
	}
	if by := podspec.DebugRunsOf(podNow(t, c, ns, "p"))["debug"].StoppedBy; by != "wherry-admin" {
		t.Errorf("stopped by %q", by)
	}
	if err := remove(path + "/debug"); !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), "has ended already: exit code 143") {
		t.Errorf("again: %v", err)
	}
	list := func() (runs debugrun.DebugRunList) {
		data, err := c.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept",
			"application/json").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &runs); err != nil {
			t.Fatal(err)
		}
		return runs
	}
	if runs := list(); runs.Kind != "DebugRunList" || runs.APIVersion != "debug.wherry.dev/v1" ||
		len(runs.Items) != 1 || runs.Items[0].Spec.Container != "debug" {
		t.Errorf("runs %+v", runs)
	}
	if err := c.CoreV1().Pods(ns).Delete(t.Context(), "p",
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	if runs := list(); len(runs.Items) != 1 {
		t.Errorf("%d records after the pod's end", len(runs.Items))
	}
	if _, err := c.CoreV1().RESTClient().Get().AbsPath(strings.Replace(path, "/p/", "/q/",
		1)).DoRaw(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("runs of no pod: %v", err)
	}
	n.pod(t, ns, pod("stubborn"))
	if _, err := execInto(t, adminConfig(t), "spdy", ns, "stubborn",
		strings.Replace(session, "tools:1", stubborn, 1)); err != nil {
		t.Fatal(err)
	}
	err := c.CoreV1().RESTClient().Delete().AbsPath(strings.Replace(path, "/p/", "/stubborn/", 1)+
		"/debug").Param("timeout", "2s").Do(t.Context()).Error()
	if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "was asked to stop but has not exited yet") {
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
		if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "p", types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), "is managed by the API server") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "p", types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}, "status"); err != nil {
			t.Errorf("%s by a status: %v", name, err)
		}
		if got := podNow(t, c, ns, "p").Annotations[podspec.DebugAnnotation]; got != stored {
			t.Errorf("%s: %s, was %s", name, got, stored)
		}
	}
	if _, err := c.CoreV1().Pods(ns).Patch(t.Context(), "p", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"other":"1"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("another annotation: %v", err)
	}
}
