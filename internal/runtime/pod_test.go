// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
)

// PID namespaces: a container of its own, one that joins another container's (TARGET), and what TARGET refuses.
func TestTargetPID(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	other := runPod(t, r)
	main := p.run("main", nil)
	foreign := other.run("main", nil)

	target := func(id string) func(*criapi.ContainerConfig) {
		return func(c *criapi.ContainerConfig) {
			c.Linux.SecurityContext.NamespaceOptions.Pid = criapi.NamespaceMode_TARGET
			c.Linux.SecurityContext.NamespaceOptions.TargetId = id
		}
	}
	debugger := p.run("debugger", nil, target(main))
	out, _ := p.exec(debugger, "pids")
	if !strings.Contains(out, `1 "/box\x00wait\x00"`) || strings.Count(out, "\\x00wait\\x00") != 2 {
		t.Errorf("the debugger sees %s, want its target as 1 and itself", out)
	}
	if out, _ := p.exec(main, "pids"); strings.Count(out, "\\x00wait\\x00") != 2 {
		t.Errorf("the target sees %s, want itself and the debugger", out)
	}

	for name, c := range map[string]struct {
		id   string
		code codes.Code
	}{"sandbox": {p.id, codes.NotFound}, "unknown": {"0123456789", codes.NotFound}, "other pod's": {foreign, codes.Unknown}} {
		cfg := &criapi.ContainerConfig{
			Metadata: &criapi.ContainerMetadata{Name: "refused"}, Image: &criapi.ImageSpec{Image: boxImage},
			Linux: &criapi.LinuxContainerConfig{SecurityContext: &criapi.LinuxContainerSecurityContext{NamespaceOptions: &criapi.NamespaceOption{
				Network: criapi.NamespaceMode_NODE, Pid: criapi.NamespaceMode_TARGET, TargetId: c.id,
			}}},
		}
		_, err := p.cri.CreateContainer(t.Context(), &criapi.CreateContainerRequest{PodSandboxId: p.id, Config: cfg, SandboxConfig: p.sandbox})
		if status.Code(err) != c.code {
			t.Errorf("target %s: %v, want %v", name, err, c.code)
		}
	}
	p.stop()
	other.stop()
}

// Container events arrive, in order, with what happened to whom.
func TestEvents(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := criapi.NewRuntimeServiceClient(r.Conn()).GetContainerEvents(ctx, &criapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	p := runPod(t, r)
	id := p.run("main", []string{"exit", "3"})
	var got []criapi.ContainerEventType
	for {
		e, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		if e.ContainerId != id {
			continue
		}
		got = append(got, e.ContainerEventType)
		if e.PodSandboxStatus.GetMetadata().GetUid() != p.sandbox.Metadata.Uid {
			t.Errorf("event of pod %v, want %s", e.PodSandboxStatus.GetMetadata(), p.sandbox.Metadata.Uid)
		}
		if e.ContainerEventType == criapi.ContainerEventType_CONTAINER_STOPPED_EVENT {
			break
		}
	}
	want := []criapi.ContainerEventType{
		criapi.ContainerEventType_CONTAINER_CREATED_EVENT,
		criapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		criapi.ContainerEventType_CONTAINER_STOPPED_EVENT,
	}
	if !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if s := p.status(id); s.ExitCode != 3 {
		t.Errorf("exit code %d, want 3", s.ExitCode)
	}
	p.stop()
}

// RS-01: the CRI hands out no place on its port for streams, which lets nobody in, and says what to use; commands without streams run, and
// who attaches within the program is joined with the container.
func TestStreamsWithoutAPort(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	id := p.run("main", nil)
	_, exec := p.cri.Exec(t.Context(), &criapi.ExecRequest{ContainerId: id, Cmd: []string{"/box", "cat"}, Stdout: true})
	_, attach := p.cri.Attach(t.Context(), &criapi.AttachRequest{ContainerId: id, Stdout: true})
	_, forward := p.cri.PortForward(t.Context(), &criapi.PortForwardRequest{PodSandboxId: p.id, Port: []int32{80}})
	for words, err := range map[string]error{"crictl exec -s": exec, "kubectl attach": attach, "kubectl port-forward": forward} {
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want words with %q", err, words)
		}
	}
	if _, err := p.cri.ExecSync(t.Context(), &criapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"/box", "true"}}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, end := io.Pipe()
	joined := make(chan error, 1)
	go func() { joined <- r.AttachRunning(ctx, id, nil, end, nil, false, nil) }()
	cancel()
	if err := <-joined; err != nil {
		t.Errorf("attached: %v", err)
	}
	_ = out.Close()
	p.stop()
}

// Images go out by Export and come back by Import, and the CRI sees what it should.
func TestImageRoundTrip(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	images := criapi.NewImageServiceClient(r.Conn())
	var archive bytes.Buffer
	if err := r.Export(t.Context(), &archive, boxImage); err != nil {
		t.Fatal(err)
	}
	before, err := images.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: boxImage}})
	if err != nil || before.Image == nil {
		t.Fatalf("the CRI does not know the imported image: %v", err)
	}
	if _, err := images.RemoveImage(t.Context(), &criapi.RemoveImageRequest{Image: &criapi.ImageSpec{Image: boxImage}}); err != nil {
		t.Fatal(err)
	}
	if s, _ := images.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: boxImage}}); s.GetImage() != nil {
		t.Fatal("the image is still there after RemoveImage")
	}
	names, err := r.Import(t.Context(), &archive)
	if err != nil || !slices.Equal(names, []string{boxImage}) {
		t.Fatalf("imported %q (%v)", names, err)
	}
	after, err := images.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: boxImage}})
	if err != nil || after.GetImage().GetId() != before.Image.Id {
		t.Errorf("id %s after the round trip (%v), want %s", after.GetImage().GetId(), err, before.Image.Id)
	}
	var list *criapi.ListImagesResponse
	eventually(t, "there are the imported one, pause and the toolbox, which is made when the start is over", func() bool {
		list, err = images.ListImages(t.Context(), &criapi.ListImagesRequest{})
		return err == nil && len(list.Images) == 3
	})
	for _, i := range list.Images {
		if strings.Contains(strings.Join(i.RepoTags, " "), "wherry.dev/pause") && !i.Pinned {
			t.Error("the pause image is not pinned")
		}
	}
}

func TestImageErrors(t *testing.T) {
	r := start(t, dataFolder(t))
	if _, err := r.Import(t.Context(), strings.NewReader("no archive")); err == nil {
		t.Error("text was imported")
	}
	img, err := ociimage.Build(ociimage.Spec{Architecture: "s390x", Entrypoint: []string{"/box"}})
	if err != nil {
		t.Fatal(err)
	}
	var foreign bytes.Buffer
	if err := ociimage.WriteTar(&foreign, img, "wherry.dev/foreign:1"); err != nil {
		t.Fatal(err)
	}
	if names, err := r.Import(t.Context(), &foreign); err == nil || !strings.Contains(err.Error(), "for this machine") {
		t.Errorf("an image for another machine: %q, %v", names, err)
	}
	for ref, want := range map[string]string{"nothere": "docker.io/library/nothere:latest is not on this node", "UPPER": "image name"} {
		if err := r.Export(t.Context(), &bytes.Buffer{}, ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("export %s: %v, want %q", ref, err, want)
		}
	}
	if err := r.Export(t.Context(), &bytes.Buffer{}); err == nil {
		t.Error("nothing was exported without an error")
	}
}

// A data folder whose path is too long for unix sockets works as any other.
func TestLongDataFolder(t *testing.T) {
	dir := dataFolder(t)
	long := filepath.Join(dir, strings.Repeat("long", 20))
	r := start(t, long)
	t.Cleanup(func() {
		_ = r.Close()
		if err := Purge(context.Background(), long); err != nil {
			t.Errorf("Purge: %v", err)
		}
		nothingLeft(t, long)
	})
	importBox(t, r)
	p := runPod(t, r)
	id := p.run("main", nil)
	if out, _ := p.exec(id, "echo", "hello"); out != "hello\n" {
		t.Errorf("exec: %q", out)
	}
}
