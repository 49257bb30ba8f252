// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/engines/byrpc"
	"github.com/wherryproject/wherry/internal/hostdebug/image"
)

// runtimeServer says that it is a runtime.
type runtimeServer struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (runtimeServer) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "test", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

// serveAt serves gRPC at a socket, by a runtime or by something else.
func serveAt(t *testing.T, path string, isRuntime bool) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	if isRuntime {
		runtimeapi.RegisterRuntimeServiceServer(s, runtimeServer{})
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
}

// DA-10: it is known of a node before anybody debugs on it whether its runtime answers, and said how to name another
// one, with the flag of who installs.
func TestRuntimeAnswers(t *testing.T) {
	dir := t.TempDir()
	runtime, other, none := filepath.Join(dir, "r"), filepath.Join(dir, "o"), filepath.Join(dir, "n")
	serveAt(t, runtime, true)
	serveAt(t, other, false)
	for socket, want := range map[string]string{runtime: "", other: other, none: "there is no socket " + none} {
		var out bytes.Buffer
		code := reportRuntime(t.Context(), engines.Options{Address: socket, Getenv: func(string) string { return "" }},
			reporter{json.NewEncoder(&out)})
		var r talk.Report
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			if r.Ready == nil || code != 0 {
				t.Errorf("%+v, %d", r, code)
			}
		} else if r.Refused == nil || code == 0 || !strings.Contains(r.Refused.Message, want) ||
			!strings.Contains(r.Refused.Message, "wherry cluster install --cri-socket") || strings.Contains(r.Refused.Message, "--address") {
			t.Errorf("%s: %+v, %d", socket, r.Refused, code)
		}
	}
	absent := &enginesocket.Absent{What: "it is nowhere", Named: "--address names another"}
	if err := forInstaller(absent); strings.Contains(err.Error(), "--address") || !strings.Contains(err.Error(), "it is nowhere (wherry") {
		t.Error(err)
	}
}

// DA-14: an image of the pod's own is asked of the runtime that was found, also where that is in no usual place of
// containerd's.
func TestOwnImageOfTheRuntimeFound(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "r")
	serveAt(t, socket, true)
	runtime, err := byrpc.NewCRI(t.Context(), engines.Options{Getenv: func(name string) string {
		return map[string]string{enginesocket.CRIPlace().Variable: socket}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.Close()
	pod := &byrpc.Pod{Containers: []byrpc.PodContainer{{Name: "web", ImageRef: "sha256:1",
		Container: &engines.Container{Image: "registry.example.com/tools:1"}}}}
	own := imageOf("registry.example.com/tools:1", pod, runtime, nil).(*image.Image).Own
	if _, err := own(t.Context()); err == nil || !strings.Contains(err.Error(), "containerd ("+socket+")") {
		t.Errorf("it was asked for elsewhere: %v", err)
	}
}
