// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

const boxImage = "wherry.dev/box:test"

// needRoot skips a test that needs root and the helper programs.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, _, err := bundle.Embedded().PauseImage(); errors.Is(err, bundle.ErrNotBuilt) {
		t.Skip("needs the helper programs: run make helpers")
	}
}

// boxArchive builds the tests' image once per process.
var boxArchive = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "wherry-box-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "box")
	build := exec.Command("go", "build", "-o", bin, "./testdata/box")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	img, err := ociimage.Build(ociimage.Spec{
		Files:      []ociimage.File{{Path: "/box", Data: data}},
		Entrypoint: []string{"/box"}, Cmd: []string{"wait"},
	})
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	err = ociimage.WriteTar(&buf, img, boxImage)
	return buf.Bytes(), err
})

// dataFolder makes a data folder which is purged at the end, and checks that nothing is left of it on the machine.
func dataFolder(t *testing.T) string {
	t.Helper()
	needRoot(t)
	dir, err := os.MkdirTemp("", "wherry-runtime-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Purge(context.Background(), dir); err != nil {
			t.Errorf("Purge: %v", err)
		}
		nothingLeft(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the data folder cannot be deleted: %v", err)
		}
	})
	return dir
}

// nothingLeft fails the test if anything of a purged data folder is still on the machine.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		t.Errorf("still mounted: %s", m.Mountpoint)
	}
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if strings.HasPrefix(p, fmt.Sprintf("/proc/%d/", os.Getpid())) {
			continue
		}
		if b, err := os.ReadFile(p); err == nil && bytes.Contains(b, []byte(dir)) {
			t.Errorf("still running: %s: %q", p, b)
		}
	}
	for _, g := range removeCgroups(t, filepath.Base(dir)) {
		t.Errorf("still there: %s", g)
	}
	if d := dirsOf(dir); d.link != "" {
		if _, err := os.Lstat(d.link); err == nil {
			t.Errorf("still there: %s", d.link)
		}
	}
}

// removeCgroups removes a test's pod parent where it is empty, and lists what is below it elsewhere.
func removeCgroups(t testing.TB, parent string) []string {
	t.Helper()
	var left []string
	for _, pattern := range []string{"/sys/fs/cgroup/" + parent, "/sys/fs/cgroup/*/" + parent} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if err := os.Remove(f); err != nil {
				below, _ := filepath.Glob(f + "/*/cgroup.procs")
				left = append(left, below...)
			}
		}
	}
	return left
}

func start(t *testing.T, dir string) *Runtime {
	t.Helper()
	r, err := Start(t.Context(), Config{DataDir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return r
}

func importBox(t *testing.T, r *Runtime) {
	t.Helper()
	data, err := boxArchive()
	if err != nil {
		t.Fatal(err)
	}
	names, err := r.Import(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 1 || names[0] != boxImage {
		t.Fatalf("imported %q, want %q", names, boxImage)
	}
}

// pod is a sandbox of a test.
type pod struct {
	t       *testing.T
	r       *Runtime
	cri     criapi.RuntimeServiceClient
	id      string
	sandbox *criapi.PodSandboxConfig
}

func runPod(t *testing.T, r *Runtime, change ...func(*criapi.PodSandboxConfig)) *pod {
	t.Helper()
	name := fmt.Sprintf("pod-%x", rand.Uint32())
	p := &pod{t: t, r: r, cri: criapi.NewRuntimeServiceClient(r.Conn()), sandbox: &criapi.PodSandboxConfig{
		Metadata:     &criapi.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"},
		LogDirectory: filepath.Join(r.config.DataDir, "logs", name),
		Linux: &criapi.LinuxPodSandboxConfig{
			CgroupParent: "/" + filepath.Base(r.config.DataDir),
			SecurityContext: &criapi.LinuxSandboxSecurityContext{NamespaceOptions: &criapi.NamespaceOption{
				Network: criapi.NamespaceMode_NODE, Pid: criapi.NamespaceMode_CONTAINER,
			}},
		},
	}}
	for _, c := range change {
		c(p.sandbox)
	}
	res, err := p.cri.RunPodSandbox(t.Context(), &criapi.RunPodSandboxRequest{Config: p.sandbox})
	if err != nil {
		t.Fatalf("RunPodSandbox: %v", err)
	}
	p.id = res.PodSandboxId
	return p
}

// run creates and starts a container.
func (p *pod) run(name string, args []string, change ...func(*criapi.ContainerConfig)) string {
	p.t.Helper()
	c := &criapi.ContainerConfig{
		Metadata: &criapi.ContainerMetadata{Name: name},
		Image:    &criapi.ImageSpec{Image: boxImage},
		Args:     args, Stdin: true,
		LogPath: name + ".log",
		Linux: &criapi.LinuxContainerConfig{SecurityContext: &criapi.LinuxContainerSecurityContext{
			NamespaceOptions: &criapi.NamespaceOption{Network: criapi.NamespaceMode_NODE, Pid: criapi.NamespaceMode_CONTAINER},
		}},
	}
	for _, f := range change {
		f(c)
	}
	res, err := p.cri.CreateContainer(p.t.Context(), &criapi.CreateContainerRequest{PodSandboxId: p.id, Config: c, SandboxConfig: p.sandbox})
	if err != nil {
		p.t.Fatalf("CreateContainer: %v", err)
	}
	if _, err := p.cri.StartContainer(p.t.Context(), &criapi.StartContainerRequest{ContainerId: res.ContainerId}); err != nil {
		p.t.Fatalf("StartContainer: %v", err)
	}
	return res.ContainerId
}

func (p *pod) status(id string) *criapi.ContainerStatus {
	p.t.Helper()
	res, err := p.cri.ContainerStatus(p.t.Context(), &criapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		p.t.Fatalf("ContainerStatus: %v", err)
	}
	return res.Status
}

// exec runs a command in a container and returns its standard output.
func (p *pod) exec(id string, args ...string) (string, int32) {
	p.t.Helper()
	res, err := p.cri.ExecSync(p.t.Context(), &criapi.ExecSyncRequest{ContainerId: id, Cmd: append([]string{"/box"}, args...), Timeout: 10})
	if err != nil {
		p.t.Fatalf("ExecSync: %v", err)
	}
	return string(res.Stdout), res.ExitCode
}

func (p *pod) stop() {
	p.t.Helper()
	if _, err := p.cri.StopPodSandbox(p.t.Context(), &criapi.StopPodSandboxRequest{PodSandboxId: p.id}); err != nil {
		p.t.Errorf("StopPodSandbox: %v", err)
	}
	if _, err := p.cri.RemovePodSandbox(p.t.Context(), &criapi.RemovePodSandboxRequest{PodSandboxId: p.id}); err != nil {
		p.t.Errorf("RemovePodSandbox: %v", err)
	}
}

// stopTaken is stop for a pod that the runtime took over after it was killed: it learns late that a container of such
// has ended, and refuses to remove it until then. Whoever asks again, as an agent does, is answered well.
func (p *pod) stopTaken() {
	p.t.Helper()
	if _, err := p.cri.StopPodSandbox(p.t.Context(), &criapi.StopPodSandboxRequest{PodSandboxId: p.id}); err != nil {
		p.t.Errorf("StopPodSandbox: %v", err)
	}
	eventually(p.t, "the sandbox is removed", func() bool {
		_, err := p.cri.RemovePodSandbox(p.t.Context(), &criapi.RemovePodSandboxRequest{PodSandboxId: p.id})
		if err != nil {
			p.t.Logf("RemovePodSandbox: %v", err)
		}
		return err == nil
	})
}

// eventually waits for something that has no event of its own.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}
