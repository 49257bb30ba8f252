// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/store"
)

// gated is an API server that can be started anew, on the same objects, with other feature gates.
type gated struct {
	t    *testing.T
	dir  string
	ns   string
	stop func()
	*kubernetes.Clientset
	config   *rest.Config
	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (g *gated) HandleWarningHeader(_ int, _, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.warnings = append(g.warnings, text)
}

// warned returns what clients were warned of since it was last asked.
func (g *gated) warned() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := strings.Join(g.warnings, "\n")
	g.warnings = nil
	return out
}

// start ends the server, if one runs, and starts one whose gates are set so.
func (g *gated) start(set map[string]bool) {
	g.t.Helper()
	if g.stop != nil {
		g.stop()
	}
	gates, err := features.New(set)
	if err != nil {
		g.t.Fatal(err)
	}
	etcd, err := store.Start(g.t.Context(), store.Config{Dir: filepath.Join(g.dir, "etcd")})
	if err != nil {
		g.t.Fatal(err)
	}
	s, stop := serve(g.t, api.Config{DataDir: g.dir, BindAddress: "127.0.0.1", EtcdServers: []string{etcd.Endpoint()},
		Features: gates})
	g.stop = func() {
		stop()
		if err := etcd.Close(); err != nil {
			g.t.Error(err)
		}
	}
	config := rest.CopyConfig(configOf(g.t, s))
	config.WarningHandler = g
	g.Clientset, g.config = clientOf(g.t, config), config
	if g.ns == "" {
		g.ns = namespace(g.t, g)
	}
}

func newGated(t *testing.T) *gated {
	g := &gated{t: t, dir: t.TempDir()}
	t.Cleanup(func() {
		if g.stop != nil {
			g.stop()
		}
	})
	return g
}

func (g *gated) get(name string) *corev1.Pod {
	g.t.Helper()
	p, err := g.CoreV1().Pods(g.ns).Get(g.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

func withSidecar(name string) *corev1.Pod {
	p := pod(name)
	p.Spec.InitContainers = []corev1.Container{{Name: "proxy", Image: "registry.example/proxy:1",
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	return p
}

func isSidecar(p *corev1.Pod) bool { return p.Spec.InitContainers[0].RestartPolicy != nil }

// SC-18: upgrade, downgrade and upgrade of the control plane, as the sidecar document's test list has it. Off drops the
// field on write unless the stored pod has it; what was stored stays as it is.
func TestSidecarGateUpAndDown(t *testing.T) {
	g := newGated(t)
	g.start(map[string]bool{"SidecarContainers": true})
	if p := createPod(t, g, g.ns, withSidecar("before")); !isSidecar(p) || g.warned() != "" {
		t.Fatal("gate on: the field was dropped")
	}

	g.start(map[string]bool{"SidecarContainers": false})
	if !isSidecar(g.get("before")) {
		t.Error("gate off: a stored pod lost the field by being read")
	}
	for _, patch := range []string{`{"metadata":{"labels":{"a":"b"}}}`,
		`{"spec":{"initContainers":[{"name":"proxy","image":"registry.example/proxy:2"}]}}`} {
		p, err := g.CoreV1().Pods(g.ns).Patch(t.Context(), "before", types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{})
		if err != nil || !isSidecar(p) {
			t.Errorf("gate off: %s on a stored pod that has the field: sidecar %t, %v", patch,
				err == nil && isSidecar(p), err)
		}
	}
	p, err := g.CoreV1().Pods(g.ns).Patch(t.Context(), "before", types.StrategicMergePatchType,
		[]byte(`{"status":{"message":"x"}}`), metav1.PatchOptions{}, "status")
	if err != nil || !isSidecar(p) || g.warned() != "" {
		t.Errorf("gate off: the status of a stored pod that has the field: %v", err)
	}
	if p := createPod(t, g, g.ns, withSidecar("during")); isSidecar(p) {
		t.Error("gate off: a new pod has the field")
	}
	if w := g.warned(); w != "spec.initContainers[0].restartPolicy: dropped, because the feature gate SidecarContainers is off" {
		t.Errorf("gate off: warned %q", w)
	}
	probed := withSidecar("probed")
	probed.Spec.InitContainers[0].StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	_, err = g.CoreV1().Pods(g.ns).Create(t.Context(), probed, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.initContainers[0].startupProbe") ||
		!strings.Contains(g.warned(), "SidecarContainers is off") {
		t.Errorf("gate off: what only sidecars may have: %v", err)
	}
	dry, err := g.CoreV1().Pods(g.ns).Create(t.Context(), withSidecar("dry"),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || isSidecar(dry) {
		t.Errorf("gate off: dry run: %v", err)
	}
	plain := pod("plain")
	plain.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "x"}}
	g.warned()
	createPod(t, g, g.ns, plain)
	if w := g.warned(); w != "" {
		t.Errorf("a pod without the field: warned %q", w)
	}

	g.start(nil)
	if !isSidecar(g.get("before")) || isSidecar(g.get("during")) {
		t.Error("gate on again: stored pods changed")
	}
	if p := createPod(t, g, g.ns, withSidecar("after")); !isSidecar(p) {
		t.Error("gate on again: the field was dropped")
	}
}

// PID-12: shareProcessNamespace is dropped on write unless the stored pod has it.
func TestSharedPIDGateUpAndDown(t *testing.T) {
	shared := func(name string) *corev1.Pod {
		p := pod(name)
		p.Spec.ShareProcessNamespace = new(true)
		return p
	}
	g := newGated(t)
	g.start(nil)
	createPod(t, g, g.ns, shared("before"))

	g.start(map[string]bool{"PodShareProcessNamespace": false})
	if p := createPod(t, g, g.ns, shared("during")); p.Spec.ShareProcessNamespace != nil {
		t.Error("gate off: a new pod has the field")
	}
	if w := g.warned(); !strings.Contains(w, "spec.shareProcessNamespace: dropped") {
		t.Errorf("gate off: warned %q", w)
	}
	p, err := g.CoreV1().Pods(g.ns).Patch(t.Context(), "before", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil || p.Spec.ShareProcessNamespace == nil {
		t.Errorf("gate off: a stored pod that has the field: %v", err)
	}
	if p := createPod(t, g, g.ns, withSidecar("sidecar")); !isSidecar(p) {
		t.Error("the other gate's field was dropped")
	}
	text, err := g.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, want := range []string{`kubernetes_feature_enabled{name="PodShareProcessNamespace",stage=""} 0`,
		`kubernetes_feature_enabled{name="SidecarContainers",stage=""} 1`} {
		if !slices.Contains(lines, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// EC-24: ephemeralContainers are dropped, and the subresource is not there.
func TestEphemeralGateOff(t *testing.T) {
	g := newGated(t)
	g.start(map[string]bool{"EphemeralContainers": false})
	p := pod("p")
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "x"}}}
	if p = createPod(t, g, g.ns, p); len(p.Spec.EphemeralContainers) > 0 {
		t.Error("a new pod has the field")
	}
	if _, err := g.CoreV1().Pods(g.ns).UpdateEphemeralContainers(t.Context(), "p", p,
		metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the subresource answers %v", err)
	}
	_, err := execInto(t, g.config, "websocket", g.ns, "p", session)
	if status := statusOf(t, err); status.Code != http.StatusNotFound ||
		!strings.Contains(status.Message, "the feature gate EphemeralContainers is off") {
		t.Errorf("exec++ answers %+v", status)
	}
}
