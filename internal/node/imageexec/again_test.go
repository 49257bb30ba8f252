// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/ops"
)

// stubborn is a runtime that fails to remove a container some times.
type stubborn struct {
	runtimeapi.RuntimeServiceClient
	fails   int
	removed chan struct{}
}

func (s *stubborn) RemoveContainer(context.Context, *runtimeapi.RemoveContainerRequest, ...grpc.CallOption) (*runtimeapi.RemoveContainerResponse, error) {
	if s.fails--; s.fails >= 0 {
		return nil, errors.New("not now")
	}
	close(s.removed)
	return nil, nil
}

func (s *stubborn) StopContainer(context.Context, *runtimeapi.StopContainerRequest, ...grpc.CallOption) (*runtimeapi.StopContainerResponse, error) {
	return nil, nil
}

func (s *stubborn) ContainerStatus(context.Context, *runtimeapi.ContainerStatusRequest, ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_EXITED}}, nil
}

// IX-05, RS-05: what cannot be removed when an image exec ends is removed later, not at the server's next start: it holds the volumes of
// pods that are gone by then.
func TestRemovedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := &stubborn{fails: 20, removed: make(chan struct{})} // two tries at the end of the session, and two each time
		e := New(Config{Ops: ops.New(ops.Config{CRI: cri.New(runtime, nil)}), Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e.Run(ctx)
		}()
		s := &Session{id: "s", e: e, container: "c"}
		s.Close()
		select {
		case <-runtime.removed:
		case <-time.After(time.Hour):
			t.Fatal("it is never removed")
		}
		synctest.Wait()
		if len(e.leftover) > 0 {
			t.Error("what was removed is kept in mind")
		}
		cancel()
		<-ended
	})
}
