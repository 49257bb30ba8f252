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
