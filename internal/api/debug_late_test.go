// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// DC-05: a debug container whose record a killed server did not come to write is on record after the next start, with
// who added it; the others are not written again.
func TestLateRecord(t *testing.T) {
	g := newGated(t)
	g.start(nil)
	for _, name := range []string{"lost", "kept"} {
		p := createPod(t, g, g.ns, pod(name))
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "tools:1", Command: []string{"id"}}}}
		if _, err := g.CoreV1().Pods(g.ns).UpdateEphemeralContainers(t.Context(), name, p,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	runs := recordsIn(t, g).Namespace(g.ns)
	for _, r := range debugRuns(t, g) {
		if r.Spec.Pod.Name == "lost" { // as if it had never been written
			if err := runs.Delete(t.Context(), r.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(debugRuns(t, g)); n != 1 {
		t.Fatalf("%d records before the restart", n)
	}
	for range 2 { // the second start finds nothing to do
		g.start(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		w, err := recordsIn(t, g).Namespace(g.ns).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for seen := 0; seen < 2; seen++ {
			if _, ok := <-w.ResultChan(); !ok {
				t.Fatalf("%d records come", seen)
			}
		}
		w.Stop()
		cancel()
	}
	now := debugRuns(t, g)
	if len(now) != 2 {
		t.Fatalf("%d records", len(now))
	}
	for _, r := range now {
		if r.Spec.User != "wherry-admin" || r.Spec.Container != "debug" || r.Spec.Image != "tools:1" ||
			len(r.Spec.Command) != 1 || r.Spec.Kind != debugrun.EphemeralContainer {
			t.Errorf("record %+v", r.Spec)
		}
	}
	if now[0].Spec.Pod.Name == now[1].Spec.Pod.Name {
		t.Error("one pod has both records")
	}
}

func recordsIn(t *testing.T, g *gated) dynamic.NamespaceableResourceInterface {
	t.Helper()
	c, err := dynamic.NewForConfig(g.config)
	if err != nil {
		t.Fatal(err)
	}
	return c.Resource(debugrun.GroupVersion().WithResource(debugrun.Resource))
}

func debugRuns(t *testing.T, g *gated) []debugrun.DebugRun {
	t.Helper()
	var list debugrun.DebugRunList
	text, err := g.CoreV1().RESTClient().Get().AbsPath("/apis/debug.wherry.dev/v1/namespaces/" + g.ns +
		"/debugruns").DoRaw(t.Context())
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}
