// SPDX-License-Identifier: Apache-2.0

package features_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/podspec"
)

func gates(t *testing.T, set map[string]bool) *features.Gates {
	t.Helper()
	g, err := features.New(set)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func off(t *testing.T, name string) *features.Gates { return gates(t, map[string]bool{name: false}) }

// Every gate is on unless it is switched off; no Gates at all are the defaults.
func TestDefaults(t *testing.T) {
	for _, g := range []*features.Gates{nil, gates(t, nil), gates(t, map[string]bool{"SidecarContainers": true})} {
		if !g.Enabled(features.SidecarContainers) || !g.Enabled(features.PodShareProcessNamespace) || !g.Enabled(features.EphemeralContainers) {
			t.Errorf("not all on: %v", g)
		}
	}
	g := off(t, "SidecarContainers")
	if g.Enabled(features.SidecarContainers) || !g.Enabled(features.PodShareProcessNamespace) {
		t.Error("the one gate that was switched off is on, or another is off")
	}
	if all := g.All(); len(all) != len(features.Names()) || all["SidecarContainers"] || !all["ImageExec"] {
		t.Errorf("all gates: %v", all)
	}
	if gates(t, map[string]bool{"AllBeta": false}).Enabled("AllBeta") {
		t.Error("a group cannot be switched")
	}
}

func TestUnknownGate(t *testing.T) {
	_, err := features.New(map[string]bool{"SidecarContainer": true})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, word := range append(features.Names(), "SidecarContainer;") {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not name %s", err, word)
		}
	}
	if !slices.IsSorted(features.Names()) {
		t.Errorf("names %v", features.Names())
	}
}

func sidecar() *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}, {Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
		Containers:     []corev1.Container{{Name: "main", RestartPolicy: new(corev1.ContainerRestartPolicyNever)}},
	}}
}

func shared(on bool) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{ShareProcessNamespace: &on, Containers: []corev1.Container{{Name: "main"}}}}
}

func debugged() *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{{}}}}
}

func held() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{podspec.HoldAnnotation: "1m"}}}
}

// SC-18, PID-12, EC-24: a field whose gate is off is dropped, and said so, unless the stored pod has it.
func TestDrop(t *testing.T) {
	for _, row := range []struct {
		gate string
		pod  func() *corev1.Pod
		path string
		kept func(*corev1.Pod) bool
	}{
		{"SidecarContainers", sidecar, "spec.initContainers[1].restartPolicy",
			func(p *corev1.Pod) bool { return p.Spec.InitContainers[1].RestartPolicy != nil }},
		{"PodShareProcessNamespace", func() *corev1.Pod { return shared(true) }, "spec.shareProcessNamespace",
			func(p *corev1.Pod) bool { return p.Spec.ShareProcessNamespace != nil }},
		{"PodShareProcessNamespace", func() *corev1.Pod { return shared(false) }, "spec.shareProcessNamespace",
			func(p *corev1.Pod) bool { return p.Spec.ShareProcessNamespace != nil }},
		{"EphemeralContainers", debugged, "spec.ephemeralContainers",
			func(p *corev1.Pod) bool { return len(p.Spec.EphemeralContainers) > 0 }},
		{"HoldOnFailure", held, "metadata.annotations[wherry.dev/hold-on-failure]",
			func(p *corev1.Pod) bool { return len(p.Annotations) > 0 }},
	} {
		for _, g := range []*features.Gates{nil, off(t, "AllAlpha")} {
			pod := row.pod()
			if said := g.Drop(pod, nil); len(said) > 0 || !equality.Semantic.DeepEqual(pod, row.pod()) {
				t.Errorf("%s on: dropped %v", row.gate, said)
			}
		}
		g := off(t, row.gate)
		pod := row.pod()
		said := g.Drop(pod, nil)
		if len(said) != 1 || !strings.HasPrefix(said[0], row.path+": ") || !strings.Contains(said[0], row.gate) || row.kept(pod) {
			t.Errorf("%s off, new pod: said %q, kept %t", row.gate, said, row.kept(pod))
		}
		bare := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{}, {}}}}
		if pod := row.pod(); len(g.Drop(pod, bare)) != 1 || row.kept(pod) {
			t.Errorf("%s off, stored without: kept", row.gate)
		}
		if pod := row.pod(); len(g.Drop(pod, row.pod())) > 0 || !row.kept(pod) {
			t.Errorf("%s off, stored with: dropped", row.gate)
		}
	}
	pod := sidecar()
	off(t, "SidecarContainers").Drop(pod, nil)
	if pod.Spec.Containers[0].RestartPolicy == nil {
		t.Error("the restart policy of a main container is another feature's")
	}
}

// SC-18, PID-12: who runs pods turns those away that need what is off.
func TestMissing(t *testing.T) {
	for _, row := range []struct {
		gate string
		pod  *corev1.Pod
		want string
	}{
		{"SidecarContainers", sidecar(), "spec.initContainers[1].restartPolicy needs the feature gate SidecarContainers, which is off"},
		{"PodShareProcessNamespace", shared(true), "spec.shareProcessNamespace needs the feature gate PodShareProcessNamespace, which is off"},
		{"PodShareProcessNamespace", shared(false), ""},
		{"PodShareProcessNamespace", sidecar(), ""},
		{"EphemeralContainers", debugged(), ""},
		{"HoldOnFailure", held(), ""},
	} {
		if got := off(t, row.gate).Missing(row.pod); got != row.want {
			t.Errorf("%s: %q, want %q", row.gate, got, row.want)
		}
		if got := gates(t, nil).Missing(row.pod); got != "" {
			t.Errorf("all on: %q", got)
		}
	}
	both := sidecar()
	both.Spec.ShareProcessNamespace = new(true)
	if got := gates(t, map[string]bool{"SidecarContainers": false, "PodShareProcessNamespace": false}).Missing(both); strings.Count(got, "which is off") != 2 {
		t.Errorf("two are missing: %q", got)
	}
}
