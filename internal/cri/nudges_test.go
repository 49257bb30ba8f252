// SPDX-License-Identifier: Apache-2.0

package cri_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
)

func newFake() *critest.Fake {
	return critest.NewFake(critest.Config{Images: map[string]critest.Image{"app": {}}})
}

func podConfig(uid string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod-" + uid, Namespace: "default", Uid: uid},
		Labels:   map[string]string{cri.LabelPodUID: uid, cri.LabelPodName: "pod-" + uid, cri.LabelPodNamespace: "default"},
	}
}

// runPod runs a sandbox with one container and gives their ids.
func runPod(t *testing.T, c *cri.Client, uid string, words ...string) (sandbox, container string) {
	t.Helper()
	s, err := c.Runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podConfig(uid)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Runtime.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: s.GetPodSandboxId(), SandboxConfig: podConfig(uid),
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: "app"}, Args: words,
			Labels: map[string]string{cri.LabelPodUID: uid, cri.LabelContainerName: "main"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Runtime.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: r.GetContainerId()}); err != nil {
		t.Fatal(err)
	}
	return s.GetPodSandboxId(), r.GetContainerId()
}

// collect takes what nudges come within d.
func collect(nudges <-chan string, d time.Duration) map[string]int {
	got := map[string]int{}
	over := time.After(d)
	for {
		select {
		case uid := <-nudges:
			got[uid]++
		case <-over:
			return got
		}
	}
}

func TestNudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := f.Client()
		ctx, cancel := context.WithCancel(t.Context())
		nudges := c.Nudges(ctx)
		if got := collect(nudges, time.Second); got[""] == 0 || len(got) != 1 {
			t.Errorf("at the start: %v, want only everything", got)
		}
		_, a := runPod(t, c, "a")
		runPod(t, c, "b")
		if got := collect(nudges, time.Second); got["a"] == 0 || got["b"] == 0 || got[""] != 0 {
			t.Errorf("after two pods started: %v", got)
		}
		if err := f.Exit(a, 1); err != nil {
			t.Fatal(err)
		}
		if got := collect(nudges, time.Second); fmt.Sprint(got) != "map[a:1]" {
			t.Errorf("after an exit: %v", got)
		}
		f.Restart()
		if got := collect(nudges, 5*time.Second); got[""] == 0 {
			t.Errorf("after the runtime's restart: %v, want everything", got)
		}
		f.Down()
		if got := collect(nudges, time.Minute); len(got) != 0 {
			t.Errorf("while the runtime is away: %v, want silence", got)
		}
		f.Up()
		if got := collect(nudges, 3*time.Second); got[""] == 0 {
			t.Errorf("after the runtime came back: %v, want everything", got)
		}
		cancel()
		for range nudges { // closes
		}
	})
}

// A reader that does not read holds up nobody, and what it missed is merged.
func TestNudgesSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := f.Client()
		ctx, cancel := context.WithCancel(t.Context())
		nudges := c.Nudges(ctx)
		collect(nudges, time.Second)
		for i := range 200 {
			uid := fmt.Sprint("p", i%4)
			config := podConfig(uid)
			config.Metadata.Attempt = uint32(i)
			if _, err := c.Runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		got := collect(nudges, time.Second)
		total := 0
		for _, n := range got {
			total += n
		}
		if len(got) != 4 || total > 8 {
			t.Errorf("400 events of 4 pods became %v", got)
		}
		cancel()
		for range nudges {
		}
	})
}

func TestNudgesWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.Unsupport("GetContainerEvents")
		var log bytes.Buffer
		c := f.Client(cri.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		ctx, cancel := context.WithCancel(t.Context())
		nudges := c.Nudges(ctx)
		collect(nudges, 3*time.Second)
		sandbox, id := runPod(t, c, "a")
		runPod(t, c, "b")
		if got := collect(nudges, 2*time.Second); got["a"] == 0 || got["b"] == 0 || len(got) != 2 {
			t.Errorf("new pods: %v", got)
		}
		if got := collect(nudges, 10*time.Second); len(got) != 0 {
			t.Errorf("nothing happened: %v", got)
		}
		_ = f.Exit(id, 0)
		if got := collect(nudges, 2*time.Second); fmt.Sprint(got) != "map[a:1]" {
			t.Errorf("an exit: %v", got)
		}
		if _, err := c.Runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			t.Fatal(err)
		}
		// The lists may be asked for in its middle, at the same instant.
		if got := collect(nudges, 2*time.Second); len(got) != 1 || got["a"] == 0 || got["a"] > 2 {
			t.Errorf("a removal: %v", got)
		}
		f.Down()
		collect(nudges, 10*time.Second)
		f.Up()
		if got := collect(nudges, 5*time.Second); got[""] == 0 {
			t.Errorf("after the runtime came back: %v, want everything", got)
		}
		cancel()
		for range nudges {
		}
		if n := strings.Count(log.String(), "no container events"); n != 1 {
			t.Errorf("said %d times that it polls, want once: %s", n, log.String())
		}
	})
}

// The same works over gRPC inside a bubble.
func TestNudgesOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c, stop, err := f.Dial()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		nudges := c.Nudges(ctx)
		collect(nudges, time.Second)
		_, id := runPod(t, c, "a", "run_for=1h")
		collect(nudges, time.Minute)
		if got := collect(nudges, time.Hour); fmt.Sprint(got) != "map[a:1]" {
			t.Errorf("after an hour: %v, %s", got, id)
		}
		cancel()
		for range nudges {
		}
		_ = c.Close()
		stop()
	})
}
