// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

const holdKey = "wherry.dev/hold-on-failure"

func heldPod(name string) *corev1.Pod {
	p := pod(name)
	p.Annotations = map[string]string{holdKey: "5m", "other": "stays"}
	return p
}

// Feature gate HoldOnFailure, up and down: off drops the annotation on write unless the stored pod has it (IX-09).
func TestHoldGateUpAndDown(t *testing.T) {
	g := newGated(t)
	g.start(nil)
	createPod(t, g, g.ns, heldPod("before"))

	g.start(map[string]bool{"HoldOnFailure": false})
	if p := createPod(t, g, g.ns, heldPod("during")); p.Annotations[holdKey] != "" || p.Annotations["other"] == "" {
		t.Errorf("gate off: a new pod has %v", p.Annotations)
	}
	if w := g.warned(); w != "metadata.annotations[wherry.dev/hold-on-failure]: dropped, because the feature gate HoldOnFailure is off" {
		t.Errorf("gate off: warned %q", w)
	}
	for name, want := range map[string]string{"before": "7m", "during": ""} {
		p, err := g.CoreV1().Pods(g.ns).Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+holdKey+`":"7m"}}}`), metav1.PatchOptions{})
		if err != nil || p.Annotations[holdKey] != want {
			t.Errorf("gate off: %s patched: %v, %v", name, p.Annotations, err)
		}
	}

	g.start(nil)
	if p := createPod(t, g, g.ns, heldPod("after")); p.Annotations[holdKey] != "5m" {
		t.Error("gate on again: the annotation was dropped")
	}
}

// entered counts what is on record about a pod: records, and the condition of those who entered it.
func (g *gated) entered(name string) (records int, tainted bool) {
	g.t.Helper()
	list := debugRuns(g.t, g)
	for i := range list {
		if list[i].Spec.Pod.Name == name {
			records++
		}
	}
	for _, c := range g.get(name).Status.Conditions {
		tainted = tainted || c.Type == debugrun.Tainted
	}
	return records, tainted
}

// Feature gate ImageExec: off, image exec is not implemented, says so and leaves nothing behind (IX-12); exec itself is
// as before.
func TestImageExecGate(t *testing.T) {
	g := newGated(t)
	const query = "stdout=true&image=tools:1&command=x"
	g.start(map[string]bool{"ImageExec": false})
	createPod(t, g, g.ns, pod("p"))
	const said = "image exec into pod p: not implemented: the feature gate ImageExec is off on this server"
	_, err := execInto(t, g.config, "websocket", g.ns, "p", query)
	if s := statusOf(t, err); s.Code != http.StatusNotImplemented || s.Message != said {
		t.Errorf("gate off: %+v", s)
	}
	if _, err := execInto(t, g.config, "spdy", g.ns, "p", query); err == nil || !strings.Contains(err.Error(), said) {
		t.Errorf("gate off, SPDY: %v", err)
	}
	_, err = execInto(t, g.config, "websocket", g.ns, "p", "stdout=true&command=x")
	if s := statusOf(t, err); strings.Contains(s.Message, "feature gate") {
		t.Errorf("gate off: exec itself answers %+v", s)
	}
	if n, tainted := g.entered("p"); n > 0 || tainted {
		t.Errorf("gate off: %d records, condition %t", n, tainted)
	}
	g.start(nil)
	_, err = execInto(t, g.config, "websocket", g.ns, "p", query)
	if s := statusOf(t, err); strings.Contains(s.Message, "feature gate") {
		t.Errorf("gate on again: %+v", s)
	}
}

// Feature gate DebugSessions: off, exec makes no debug containers and says what does without it; their subresource is
// as before (DC-03, EC-24). What is on record stays readable.
func TestDebugSessionsGate(t *testing.T) {
	g := newGated(t)
	g.start(map[string]bool{"DebugSessions": false})
	p := createPod(t, g, g.ns, pod("p"))
	_, err := execInto(t, g.config, "websocket", g.ns, "p", session)
	if s := statusOf(t, err); s.Code != http.StatusNotFound ||
		!strings.Contains(s.Message, "the feature gate DebugSessions is off; kubectl debug does without them") {
		t.Errorf("gate off: %+v", s)
	}
	if n, tainted := g.entered("p"); n > 0 || tainted || len(g.get("p").Spec.EphemeralContainers) > 0 {
		t.Errorf("gate off: %d records, condition %t, %d debug containers", n, tainted,
			len(g.get("p").Spec.EphemeralContainers))
	}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "x"}}}
	if _, err := g.CoreV1().Pods(g.ns).UpdateEphemeralContainers(t.Context(), "p", p,
		metav1.UpdateOptions{}); err != nil {
		t.Errorf("gate off: the subresource answers %v", err)
	}
	if n, tainted := g.entered("p"); n != 1 || !tainted {
		t.Errorf("gate off: the subresource left %d records, condition %t", n, tainted)
	}
}

// Issue 5, feature gates: /configz shows those who may what is in effect.
func TestConfigz(t *testing.T) {
	g := newGated(t)
	g.start(map[string]bool{"ImageExec": false})
	var page struct {
		Wherry struct{ FeatureGates map[string]bool }
	}
	text, err := g.CoreV1().RESTClient().Get().AbsPath("/configz").DoRaw(t.Context())
	if err == nil {
		err = json.Unmarshal(text, &page)
	}
	if err != nil {
		t.Fatal(err)
	}
	if gates := page.Wherry.FeatureGates; gates["ImageExec"] || !gates["SidecarContainers"] || len(gates) < 6 {
		t.Errorf("gates %v", gates)
	}
	config := rest.AnonymousClientConfig(adminConfig(t))
	config.BearerToken = "jane-token"
	if _,
		err := clientOf(t,
		config).CoreV1().RESTClient().Get().AbsPath("/configz").DoRaw(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("somebody without the right reads %v", err)
	}
}
