// SPDX-License-Identifier: Apache-2.0

package cri_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
)

func TestParseEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"unix:///run/containerd/containerd.sock": "/run/containerd/containerd.sock",
		"/run/x.sock":                            "/run/x.sock",
		"unix:///a/../b.sock":                    "/b.sock",
		"":                                       "error: empty",
		"tcp://127.0.0.1:1":                      "error: only unix sockets",
		"unix://relative":                        "error: absolute",
		"relative":                               "error: absolute",
		"unix:///run/":                           "error: folder",
	} {
		got, err := cri.ParseEndpoint(in)
		if word, bad := strings.CutPrefix(want, "error: "); bad {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("ParseEndpoint(%q) = %q, %v; want an error with %q", in, got, err, word)
			}
		} else if got != want || err != nil {
			t.Errorf("ParseEndpoint(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	f.Add("unix:///run/x.sock")
	f.Add("unix://")
	f.Fuzz(func(t *testing.T, in string) {
		if path, err := cri.ParseEndpoint(in); err == nil && !filepath.IsAbs(path) {
			t.Errorf("ParseEndpoint(%q) = %q", in, path)
		}
	})
}

// listen serves on a unix socket what register registers.
func listen(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cri.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	register(s)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "unix://" + path
}

func TestDial(t *testing.T) {
	f := newFake()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := cri.Dial(ctx, listen(t, func(s *grpc.Server) {
		runtimeapi.RegisterRuntimeServiceServer(s, f)
		runtimeapi.RegisterImageServiceServer(s, f)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: "app"}}); err != nil || r.GetImage() == nil {
		t.Errorf("ImageStatus: %v, %v", r, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestDialErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none.sock")
	dead := filepath.Join(t.TempDir(), "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	old := newFake()
	old.Fault(func(critest.Call) error {
		return status.Error(codes.Unimplemented, "unknown service runtime.v1.RuntimeService")
	})
	for _, tc := range []struct{ endpoint, words string }{
		{"unix://" + file, "the socket does not exist"},
		{"unix://" + filepath.Dir(file), "not a socket"},
		{"unix://" + dead, "is it running?"},
		{listen(t, func(*grpc.Server) {}), "does not speak CRI v1"},
		{listen(t, func(s *grpc.Server) { runtimeapi.RegisterRuntimeServiceServer(s, old) }), "does not speak CRI v1"},
		{listen(t, func(s *grpc.Server) { runtimeapi.RegisterRuntimeServiceServer(s, future{}) }), `speaks CRI "v7"`},
	} {
		c, err := cri.Dial(t.Context(), tc.endpoint)
		if err == nil || !strings.Contains(err.Error(), tc.words) || !strings.Contains(err.Error(), tc.endpoint) {
			t.Errorf("Dial(%q) = %v, %v; want an error with %q and the endpoint", tc.endpoint, c, err, tc.words)
		}
	}
}

type future struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (future) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "new", RuntimeVersion: "9", RuntimeApiVersion: "v7"}, nil
}

func TestErrors(t *testing.T) {
	of := func(c codes.Code, m string) error { return fmt.Errorf("start main: %w", status.Error(c, m)) }
	for _, tc := range []struct {
		err  error
		is   func(error) bool
		want bool
	}{
		{of(codes.NotFound, "x"), cri.NotFound, true},
		{nil, cri.NotFound, false},
		{errors.New("not found"), cri.NotFound, false},
		{of(codes.Unimplemented, "x"), cri.Unimplemented, true},
		{of(codes.Unavailable, "x"), cri.Unavailable, true},
		{of(codes.Unknown, "server is not initialized yet"), cri.Unavailable, true},
		{of(codes.AlreadyExists, "x"), cri.AlreadyExists, true},
		{of(codes.FailedPrecondition, `name "a" is reserved for "b"`), cri.AlreadyExists, true},
		{of(codes.Unknown, `failed to reserve container name "a"`), cri.AlreadyExists, true},
		{of(codes.FailedPrecondition, "something else"), cri.AlreadyExists, false},
		{of(codes.Canceled, "x"), cri.Cancelled, true},
		{of(codes.DeadlineExceeded, "x"), cri.Cancelled, true},
		{fmt.Errorf("x: %w", context.Canceled), cri.Cancelled, true},
		{of(codes.Unknown, "x"), cri.Cancelled, false},
	} {
		if got := tc.is(tc.err); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
	if m := cri.Message(of(codes.Unknown, "no such file")); m != "start main: no such file" {
		t.Errorf("Message: %q", m)
	}
	if m := cri.Message(errors.New("plain")); m != "plain" || cri.Message(nil) != "" {
		t.Errorf("Message: %q", m)
	}
}

// Statuses of containers that have ended are asked for until they cannot change, and then no more.
func TestObserveCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := f.Client()
		_, id := runPod(t, c, "a", "run_for=1s")
		asked := func() int { return len(f.Calls("ContainerStatus")) }
		look := func() *runtimeapi.ContainerStatus {
			t.Helper()
			seen, err := c.Observe(t.Context(), "a")
			if err != nil || len(seen.Containers) != 1 {
				t.Fatalf("Observe: %+v, %v", seen, err)
			}
			return seen.Containers[0].Status
		}
		look()
		time.Sleep(2 * time.Second)
		look()
		look()
		if n := asked(); n != 3 {
			t.Errorf("asked %d times while the status may change, want 3", n)
		}
		time.Sleep(5 * time.Second)
		look()
		look()
		if st := look(); asked() != 4 || st.GetId() != id || st.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
			t.Errorf("asked %d times, status %v", asked(), st)
		}
		if _, err := c.Runtime.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
			t.Fatal(err)
		}
		if seen, err := c.Observe(t.Context(), "a"); err != nil || len(seen.Containers) != 0 || len(seen.Sandboxes) != 1 {
			t.Errorf("Observe after the removal: %+v, %v", seen, err)
		}
		if _, err := c.Observe(t.Context(), ""); err == nil {
			t.Error("Observe of no pod is no error")
		}
	})
}

// What goes away between the list and the question is left out.
func TestObserveRace(t *testing.T) {
	f := newFake()
	c := f.Client()
	runPod(t, c, "a")
	f.Fault(func(call critest.Call) error {
		if call.Method == "ContainerStatus" || call.Method == "PodSandboxStatus" {
			return status.Error(codes.NotFound, "gone")
		}
		return nil
	})
	if seen, err := c.Observe(t.Context(), "a"); err != nil || len(seen.Containers)+len(seen.Sandboxes) != 0 {
		t.Errorf("Observe: %+v, %v", seen, err)
	}
	f.Fault(func(critest.Call) error { return status.Error(codes.Unavailable, "away") })
	if _, err := c.Observe(t.Context(), "a"); !cri.Unavailable(err) {
		t.Errorf("Observe of a runtime that is away: %v", err)
	}
}

func TestExecSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := f.Client()
		_, id := runPod(t, c, "a")
		if r, err := c.ExecSync(t.Context(), id, []string{"x", "stdout=o", "stderr=e", "exit_code=4"}, 0); err != nil || r.ExitCode != 4 || string(r.Output()) != "o\ne\n" {
			t.Errorf("ExecSync: %+v, %v", r, err)
		}
		began := time.Now()
		_, err := c.ExecSync(t.Context(), id, []string{"x", "run_for=1m"}, 500*time.Millisecond)
		late, ok := errors.AsType[*cri.ExecTimeoutError](err)
		if !ok || late.Timeout != 500*time.Millisecond || !strings.Contains(err.Error(), "timed out after 500ms") {
			t.Errorf("ExecSync: %v, want a time-out", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("a time-out of half a second took %s, want CRI's next whole second", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.ExecSync(ctx, id, []string{"x", "run_for=1m"}, time.Hour); !cri.Cancelled(err) {
			t.Errorf("ExecSync given up: %v", err)
		}
		if _, err := c.ExecSync(t.Context(), id, nil, 0); err == nil {
			t.Error("no command is no error")
		}
	})
}

// IX-06: what an image exec is made of is told by its label; what has none, or another, is of a pod.
func TestIsExec(t *testing.T) {
	for label, want := range map[string]bool{cri.TypeExec: true, "INIT": false, "REGULAR": false, "": false, "odd": false} {
		if got := cri.IsExec(map[string]string{cri.LabelContainerType: label}); got != want {
			t.Errorf("label %q: %t", label, got)
		}
	}
	if cri.IsExec(nil) {
		t.Error("a container without labels is taken for an image exec's")
	}
}

// The guard answers before the runtime is asked.
func TestGuard(t *testing.T) {
	f := newFake()
	c := f.Client()
	config := podConfig("a")
	config.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET}}}
	if _, err := c.Runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config}); err == nil || len(f.Calls("RunPodSandbox")) != 0 {
		t.Errorf("PID-09: %v, and the runtime was asked %d times", err, len(f.Calls("RunPodSandbox")))
	}
	sandbox, here := runPod(t, c, "a")
	_, elsewhere := runPod(t, c, "b")
	before := len(f.Calls("CreateContainer"))
	create := func(target string) error {
		_, err := c.Runtime.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
			PodSandboxId: sandbox, SandboxConfig: podConfig("a"),
			Config: &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: "debugger"}, Image: &runtimeapi.ImageSpec{Image: "app"},
				Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
					NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: target}}},
			},
		})
		return err
	}
	for _, target := range []string{"", sandbox, elsewhere, here[:12], "unknown"} {
		if err := create(target); err == nil {
			t.Errorf("PID-08: target %q was accepted", target)
		}
	}
	if n := len(f.Calls("CreateContainer")); n != before {
		t.Errorf("PID-08: the runtime was asked %d times", n-before)
	}
	if err := create(here); err != nil {
		t.Errorf("PID-07: %v", err)
	}
}

// PID-11: what a runtime says of a mode it does not have names the mode, whichever way it says so; what it says of other things is
// left as it is.
func TestGuardNamesMode(t *testing.T) {
	for _, tc := range []struct {
		err   error
		named bool
	}{
		{status.Error(codes.Unimplemented, "not supported"), true},
		{status.Error(codes.Unknown, "failed to generate spec: unsupported namespace mode: 2"), true},
		{status.Error(codes.InvalidArgument, "invalid namespace option"), true},
		{status.Error(codes.Unknown, "failed to setup network namespace"), false},
		{status.Error(codes.Unknown, "no such image"), false},
	} {
		f := newFake()
		config := podConfig("a")
		config.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_NODE}}}
		c := cri.New(refusing{RuntimeServiceClient: f.Client().Runtime, err: tc.err}, f.Client().Images)
		_, err := c.Runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
		if named := strings.Contains(cri.Message(err), "NODE"); named != tc.named || status.Code(err) != status.Code(tc.err) {
			t.Errorf("%v became %v", tc.err, err)
		}
	}
}

// refusing is a runtime that makes no sandboxes.
type refusing struct {
	runtimeapi.RuntimeServiceClient
	err error
}

func (r refusing) RunPodSandbox(context.Context, *runtimeapi.RunPodSandboxRequest, ...grpc.CallOption) (*runtimeapi.RunPodSandboxResponse, error) {
	return nil, r.err
}
