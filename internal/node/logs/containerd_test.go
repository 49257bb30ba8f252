// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// childMark is in the environment of the process that runs the real runtime.
const childMark = "WHERRY_LOGS_TEST_CHILD"

const linesImage = "wherry.dev/lines:test"

// The embedded containerd writes, is told to reopen again and again, and is followed meanwhile: no line is lost or
// comes twice, and the end is noticed at once. It runs in a process of its own, for containerd leaves goroutines that
// only the end of the process ends.
func TestPL09OnEmbeddedContainerd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, _, err := bundle.Embedded().PauseImage(); errors.Is(err, bundle.ErrNotBuilt) {
		t.Skip("needs the helper programs: run make helpers")
	}
	if os.Getenv(childMark) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestPL09OnEmbeddedContainerd$", "-test.v", "-test.timeout=2m")
		child.Env = append(os.Environ(), childMark+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	cri, dir := startContainerd(t)
	id, path := runLines(t, cri, dir)
	status := func() *runtimeapi.ContainerStatus {
		st, err := cri.ContainerStatus(context.Background(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			t.Error(err)
		}
		return st.GetStatus()
	}
	running := func() bool { return status().GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING }
	out, done := follow(t.Context(), path, corev1.PodLogOptions{}, running)
	rot := NewRotator(RotatorConfig{MaxSize: 1, MaxFiles: 4, Runtime: OverCRI(cri, dir)})
	const rotations = 10
	stopped := make(chan time.Time, 1)
	read, moved := atomic.Int64{}, make(chan struct{}, 1) // how many lines were read; some have been
	go func() {
		<-moved // who has opened the log has its first line; who opens it later begins with the file of then
		for i := range rotations {
			if err := rot.Rotate(context.Background(), start.Add(time.Duration(i)*time.Minute)); err != nil {
				t.Error(err)
			}
			for size := int64(0); size < 2000; { // some lines in each
				if info, err := os.Stat(path); err == nil {
					size = info.Size()
				}
			}
			// Who lags behind by more files than are kept misses lines, and is meant to: not here.
			for first := firstLine(t, path); read.Load() < first; {
				if _, goesOn := <-moved; !goesOn {
					break
				}
			}
		}
		if _, err := cri.StopContainer(context.Background(),
			&runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 10}); err != nil {
			t.Error(err)
		}
		stopped <- time.Now()
	}()
	last := ""
	for {
		line, err := out.r.ReadString('\n')
		if err != nil {
			last = line
			break
		}
		if want := fmt.Sprintf("line %d\n", read.Load()); line != want && !t.Failed() {
			t.Errorf("%q, want %q", line, want)
		}
		read.Add(1)
		select {
		case moved <- struct{}{}:
		default:
		}
	}
	close(moved)
	if err := <-done; err != nil {
		t.Error(err)
	}
	t.Logf("%d lines; the end was noticed %v after StopContainer returned", read.Load(), time.Since(<-stopped))
	if want := fmt.Sprintf("end after %d", read.Load()); strings.TrimSuffix(last, "\n") != want {
		t.Errorf("the last line is %q, want %q", last, want)
	}
	if got := files(t, path); len(got) != 4 || !strings.HasSuffix(got[1], gz) || strings.HasSuffix(got[3], gz) {
		t.Errorf("files %v", got)
	}
	if st := status(); st.GetLogPath() != path || st.GetExitCode() != 0 {
		t.Errorf("log path %q, exit code %d", st.GetLogPath(), st.GetExitCode())
	}
}

// firstLine is the number of the first line in a log file.
func firstLine(t *testing.T, path string) int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	text, _, _ := strings.Cut(string(data), "\n")
	n, err := strconv.ParseInt(text[strings.LastIndexByte(text, ' ')+1:], 10, 64)
	if err != nil {
		t.Errorf("%s begins with %q: %v", path, text, err)
	}
	return n
}

func startContainerd(t *testing.T) (runtimeapi.RuntimeServiceClient, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wherry-logs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(runtime.Purge(context.Background(), dir), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
		for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
			found, _ := filepath.Glob(pattern + filepath.Base(dir))
			for _, g := range found {
				_ = os.Remove(g)
			}
		}
	})
	rt, err := runtime.Start(t.Context(), runtime.Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	bin := filepath.Join(dir, "lines")
	build := exec.Command("go", "build", "-o", bin, "./testdata/lines")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	img, err := ociimage.Build(ociimage.Spec{Files: []ociimage.File{{Path: "/lines", Data: data}},
		Entrypoint: []string{"/lines"}})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := ociimage.WriteTar(&archive, img, linesImage); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Import(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	return runtimeapi.NewRuntimeServiceClient(rt.Conn()), dir
}

// runLines runs the container; its sandbox is removed at the end.
func runLines(t *testing.T, cri runtimeapi.RuntimeServiceClient, dir string) (id, path string) {
	t.Helper()
	host := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER}
	box := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "lines", Namespace: "default", Uid: "uid"},
		LogDirectory: filepath.Join(dir, "logs"),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    "/" + filepath.Base(dir),
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: host},
		},
	}
	s, err := cri.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: box})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := cri.RemovePodSandbox(context.Background(),
			&runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.PodSandboxId}); err != nil {
			t.Error(err)
		}
	})
	c, err := cri.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: s.PodSandboxId,
		SandboxConfig: box, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: linesImage},
			LogPath: "main/0.log",
			Linux:   &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: host}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _,
		err := cri.StartContainer(t.Context(),
		&runtimeapi.StartContainerRequest{ContainerId: c.ContainerId}); err != nil {
		t.Fatal(err)
	}
	return c.ContainerId, filepath.Join(box.LogDirectory, "main", "0.log")
}
