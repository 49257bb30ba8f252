// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest"
)

// The judge is no better than what it finds: an etcd that acknowledges what it does not keep is found (RS-07).
func TestLostWritesAreFound(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		never := ownNever()
		defer close(never)
		w := newWorld(t, dir, nil, 1)
		w.misfortune.lie = "configmaps/default/c0"
		w.boot()
		defer w.kill(processEnds)
		l := newLoad(w, 1)
		for range 20 {
			l.countOnce(t.Context(), "c0")
		}
		if len(w.judge.faults) == 0 {
			t.Errorf("nothing was found, after %d was acknowledged", l.lastTold("c0"))
		}
	})
}

// A store that does not sync what it acknowledges is found when the power ends (RS-07).
func TestUnsyncedWritesAreFound(t *testing.T) {
	d := startDisk(t)
	if d == nil {
		t.Skip("no disk can be mounted here")
	}
	dir := t.TempDir()
	d = diskFor(t, d, 2, filepath.Join(dir, "data"))
	for _, noSync := range []bool{false, true} {
		if err := d.Mount(filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			never := ownNever()
			defer close(never)
			w := newWorld(t, dir, d, 2)
			w.noSync, w.apart = noSync, true
			w.boot()
			l := newLoad(w, 2)
			for range 20 {
				l.countOnce(t.Context(), "c0")
			}
			w.kill(powerEnds)
			if w.boot() {
				l.countOnce(t.Context(), "c0")
			}
			w.kill(processEnds)
			if found := len(w.judge.faults) > 0; found != noSync || l.lastTold("c0") < 10 {
				t.Errorf("without syncs: %v, %d acknowledged; found: %q", noSync, l.lastTold("c0"), w.judge.faults)
			}
		})
	}
}

// Two containers of one name at the same time are found, and one more start of what must not start again (RS-07, PL-02).
func TestSecondRunsAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := critest.NewFake(critest.Config{AnyImage: true})
		truth := fake.Client()
		j := &judge{truth: truth, begin: time.Now(), never: map[string]bool{}, runs: map[string]string{}}
		j.once("u", "main")
		ctx := context.Background()
		labels := map[string]string{"io.kubernetes.pod.uid": "u"}
		config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Uid: "u", Namespace: "default"}}
		box, err := truth.Runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := truth.Images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "image"}}); err != nil {
			t.Fatal(err)
		}
		for attempt, want := range []int{0, 2} {
			c, err := truth.Runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: box.GetPodSandboxId(), SandboxConfig: config,
				Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "main", Attempt: uint32(attempt)},
					Image: &runtimeapi.ImageSpec{Image: "image"}, Labels: labels}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := truth.Runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: c.GetContainerId()}); err != nil {
				t.Fatal(err)
			}
			j.started(c.GetContainerId())
			if len(j.faults) != want {
				t.Errorf("attempt %d: %q, want %d faults", attempt, j.faults, want)
			}
		}
	})
}

// A history that goes back, leaves something out or tells something twice is found (RS-07).
func TestTornHistoriesAreFound(t *testing.T) {
	at := func(kind watch.EventType, version int, name string, n int) watch.Event {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(version)}, Data: map[string]string{"n": fmt.Sprint(n)}}
		return watch.Event{Type: kind, Object: m}
	}
	for name, c := range map[string]struct {
		events []watch.Event
		want   string
	}{
		"as it was":      {[]watch.Event{at(watch.Added, 5, "a", 1), at(watch.Modified, 7, "a", 2), at(watch.Bookmark, 9, "", 0), at(watch.Deleted, 10, "a", 2)}, ""},
		"back in time":   {[]watch.Event{at(watch.Added, 7, "a", 1), at(watch.Added, 6, "b", 1)}, "after 7 was seen"},
		"told twice":     {[]watch.Event{at(watch.Added, 5, "a", 1), at(watch.Added, 5, "a", 1)}, "after 5 was seen"},
		"added twice":    {[]watch.Event{at(watch.Added, 5, "a", 1), at(watch.Added, 6, "a", 1)}, "was there already"},
		"never added":    {[]watch.Event{at(watch.Modified, 5, "a", 1)}, "never there"},
		"an older value": {[]watch.Event{at(watch.Added, 5, "a", 3), at(watch.Modified, 6, "a", 2)}, "went from 3 to 2"},
	} {
		w := &world{judge: &judge{begin: time.Now()}}
		o := &onlooker{w: w, seen: map[string]int64{}}
		for _, e := range c.events {
			o.event(e)
		}
		if got := strings.Join(w.judge.faults, "; "); (got != "") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}
