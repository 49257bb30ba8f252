// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

// BenchmarkStart measures a start on a data folder that was used before, and the end.
func BenchmarkStart(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root")
	}
	dir := b.TempDir()
	b.Cleanup(func() {
		if err := Purge(context.Background(), dir); err != nil {
			b.Error(err)
		}
	})
	for i := 0; b.Loop(); i++ {
		r, err := Start(b.Context(), Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkPod measures the bare CRI calls of a pod's life on the pod network: what the agent's own times are held
// against.
func BenchmarkPod(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root")
	}
	for _, shim := range []string{StockShim, OwnShim} {
		for _, noSync := range []bool{false, true} {
			b.Run(fmt.Sprintf("shim=%s/no_sync=%v", shim, noSync), func(b *testing.B) { benchmarkPod(b, shim, noSync) })
		}
	}
}

func benchmarkPod(b *testing.B, shim string, noSync bool) {
	dir, err := os.MkdirTemp("", "wherry-runtime-")
	if err != nil {
		b.Fatal(err)
	}
	bridge, subnet, err := network.Derive(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	c := Config{DataDir: dir, Shim: shim, NoSync: noSync, BridgeName: bridge, PodCIDRs: []string{subnet.String()}, Logger: slog.New(slog.DiscardHandler)}
	r, err := Start(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		n, _, _ := c.Network()
		if err := errors.Join(r.Close(), Purge(context.Background(), dir), network.Teardown(n), os.RemoveAll(dir)); err != nil {
			b.Error(err)
		}
		removeCgroups(b, filepath.Base(dir))
	})
	archive, err := boxArchive()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := r.Import(b.Context(), bytes.NewReader(archive)); err != nil {
		b.Fatal(err)
	}
	cri := criapi.NewRuntimeServiceClient(r.Conn())
	var sandboxed, started, stopped time.Duration
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprint("pod-", i)
		sandbox := &criapi.PodSandboxConfig{
			Metadata: &criapi.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"}, Hostname: name,
			LogDirectory: filepath.Join(dir, "logs", name), Linux: &criapi.LinuxPodSandboxConfig{CgroupParent: "/" + filepath.Base(dir)},
		}
		begin := time.Now()
		s, err := cri.RunPodSandbox(b.Context(), &criapi.RunPodSandboxRequest{Config: sandbox})
		if err != nil {
			b.Fatal(err)
		}
		sandboxed += time.Since(begin)
		ctr, err := cri.CreateContainer(b.Context(), &criapi.CreateContainerRequest{PodSandboxId: s.PodSandboxId, SandboxConfig: sandbox, Config: &criapi.ContainerConfig{
			Metadata: &criapi.ContainerMetadata{Name: "main"}, Image: &criapi.ImageSpec{Image: boxImage}, LogPath: "main.log",
		}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := cri.StartContainer(b.Context(), &criapi.StartContainerRequest{ContainerId: ctr.ContainerId}); err != nil {
			b.Fatal(err)
		}
		started += time.Since(begin)
		begin = time.Now()
		_, err1 := cri.StopContainer(b.Context(), &criapi.StopContainerRequest{ContainerId: ctr.ContainerId, Timeout: 10})
		_, err2 := cri.StopPodSandbox(b.Context(), &criapi.StopPodSandboxRequest{PodSandboxId: s.PodSandboxId})
		_, err3 := cri.RemovePodSandbox(b.Context(), &criapi.RemovePodSandboxRequest{PodSandboxId: s.PodSandboxId})
		if err := errors.Join(err1, err2, err3); err != nil {
			b.Fatal(err)
		}
		stopped += time.Since(begin)
	}
	for unit, d := range map[string]time.Duration{"sandbox-ms": sandboxed, "running-ms": started, "gone-ms": stopped} {
		b.ReportMetric(float64(d.Milliseconds())/float64(b.N), unit)
	}
}
