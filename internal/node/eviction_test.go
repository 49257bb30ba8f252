// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/node/evict"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/pullrecord"
)

// TestRefuseUnderPressure proves PL-13 at the agent: a pod that comes while the node is under pressure is rejected in the kubelet's
// words, but not one that it has begun.
func TestRefuseUnderPressure(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	a := &Agent{machine: machine{apparmor: true}, evictor: &evictor{}}
	if r := a.Refuse(pod); r != nil {
		t.Errorf("without pressure: %s", r.Message)
	}
	a.evictor.state.Pressed = map[corev1.NodeConditionType]time.Time{corev1.NodeMemoryPressure: time.Now()}
	r := a.Refuse(pod)
	if r == nil || r.Reason != plan.ReasonEvicted || r.Message != "Pod was rejected: The node had condition: [MemoryPressure]. " || r.Begun {
		t.Errorf("under pressure: %+v", r)
	}
}

// TestConfigz: the node's page shows its gates and thresholds in the kubelet's words, and the flags.
func TestConfigz(t *testing.T) {
	gates, err := features.New(map[string]bool{"ImageExec": false})
	if err != nil {
		t.Fatal(err)
	}
	list, err := evict.Parse(evict.Flags{Hard: map[string]string{"memory.available": "100Mi"}, Soft: map[string]string{"nodefs.available": "10%"},
		SoftGrace: map[string]string{"nodefs.available": "1m"}})
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{cfg: Config{Features: gates, MaxPods: 7, Flags: map[string]string{"node-name": "n"}, Eviction: Eviction{Thresholds: list}}}
	w := httptest.NewRecorder()
	a.configz().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/configz", nil))
	for _, want := range []string{`"ImageExec": false`, `"SidecarContainers": true`, `"maxPods": 7`, `"memory.available": "100Mi"`, `"nodefs.available": "10%"`,
		`"nodefs.available": "1m0s"`, `"node-name": "n"`, `"kubeletconfig": {`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("lacks %s:\n%s", want, w.Body)
		}
	}
}

// TestRemember (PL-13): which images the collection may take.
func TestRemember(t *testing.T) {
	now := time.Now()
	used := map[string]bool{"docker.io/library/web:1": true, "sha256:running": true}
	for _, row := range []struct {
		what        string
		image       *runtimeapi.Image
		inUse, kept bool
	}{
		{"free", &runtimeapi.Image{Id: "sha256:a", RepoTags: []string{"docker.io/library/old:1"}, RepoDigests: []string{"docker.io/library/old@sha256:1"}}, false, false},
		{"named by a pod", &runtimeapi.Image{Id: "sha256:b", RepoTags: []string{"docker.io/library/web:1"}, RepoDigests: []string{"x"}}, true, false},
		{"of a container", &runtimeapi.Image{Id: "sha256:running", RepoDigests: []string{"x"}}, true, false},
		{"imported, no registry has it", &runtimeapi.Image{Id: "sha256:c", RepoTags: []string{"wherry.test/x:1"}}, false, true},
		{"pinned", &runtimeapi.Image{Id: "sha256:d", RepoDigests: []string{"x"}, Pinned: true}, false, true},
		{"the toolbox", &runtimeapi.Image{Id: "sha256:e", RepoTags: []string{"wherry.dev/toolbox:latest"}, RepoDigests: []string{"x"}}, false, true},
	} {
		got := remember(evict.Image{}, row.image, used, now)
		if got.InUse != row.inUse || got.Kept != row.kept || got.Found != now || got.LastUsed.IsZero() == row.inUse {
			t.Errorf("%s: %+v", row.what, got)
		}
	}
	was := evict.Image{Found: now.Add(-time.Hour), LastUsed: now.Add(-time.Minute)}
	if got := remember(was, &runtimeapi.Image{Id: "x"}, nil, now); got.Found != was.Found || got.LastUsed != was.LastUsed {
		t.Errorf("what was known is forgotten: %+v", got)
	}
}

// TestCollect (PL-13): what went for its age counts for what the disk needs, so that no more goes than that takes.
func TestCollect(t *testing.T) {
	fake := critest.NewFake(critest.Config{Images: map[string]critest.Image{"old": {Size: 30}, "young": {Size: 30}}})
	client := fake.Client()
	pulls, err := pullrecord.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	old, err := client.Images.ImageStatus(t.Context(), &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: "old"}})
	if err != nil {
		t.Fatal(err)
	}
	k := &imageKeeper{images: client.Images, runtime: client.Runtime, log: slog.New(slog.DiscardHandler), pulls: pulls,
		seen: map[string]evict.Image{old.Image.Id: {Found: time.Now().Add(-48 * time.Hour)}}}
	dropped := 0
	k.drop = func(context.Context) error { dropped++; return nil }
	p := evict.ImagePolicy{High: 80, Low: 60, MaxAge: 24 * time.Hour}
	k.collect(t.Context(), p, evict.Reading{Available: 10, Capacity: 100}, false, nil)
	left, err := client.Images.ListImages(t.Context(), &runtimeapi.ListImagesRequest{})
	if err != nil || len(left.Images) != 1 || left.Images[0].Id == old.Image.Id {
		t.Errorf("left are %v, %v", left, err)
	}
	if dropped != 0 {
		t.Error("there was room enough, and what failed pulls had left went")
	}
	k.collect(t.Context(), p, evict.Reading{Available: 10, Capacity: 100}, true, nil)
	if dropped != 1 {
		t.Errorf("the disk needed room, and what failed pulls had left went %d times", dropped)
	}
}
