// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/ops"
)

// ended is a runtime whose container has ended with an exit code; -1: it knows of no such container any more.
type ended struct {
	stubborn
	code int32
}

func (e *ended) StartContainer(context.Context, *runtimeapi.StartContainerRequest, ...grpc.CallOption) (*runtimeapi.StartContainerResponse, error) {
	return nil, nil
}

func (e *ended) ContainerStatus(context.Context, *runtimeapi.ContainerStatusRequest, ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error) {
	if e.code < 0 {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_EXITED,
		ExitCode: e.code}}, nil
}

// attached is a runtime whose command ends when until is closed, at once if it is nil.
type attached struct {
	Runtime
	until <-chan struct{}
}

func (a attached) Attach(context.Context, string, Streams) error {
	if a.until != nil {
		<-a.until
	}
	return nil
}

// IX-05: a command that is terminated because of its pod's end, or its time limit, is not silent about it; one that ended by itself is.
func TestToldWhyItEnded(t *testing.T) {
	there := &corev1.Pod{}
	leaving := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Now()}}}
	const deleted = "wherry: the command was terminated: the pod is being deleted\n"
	for name, c := range map[string]struct {
		code     int32
		pod      *corev1.Pod
		wantCode int
		want     string
	}{
		"killed by the pod's deletion":     {137, leaving, 137, deleted},
		"killed, and the pod has gone":     {137, nil, 137, deleted},
		"asked to end by the deletion":     {143, leaving, 143, deleted},
		"killed by somebody in the pod":    {137, there, 137, ""},
		"done while the pod is being gone": {0, leaving, 0, ""},
		"failed in a pod that leaves":      {1, leaving, 1, ""},
		"gone with the sandbox":            {-1, there, 137, "wherry: the command was terminated: the pod's sandbox was stopped\n"},
		"gone with a pod that is deleted":  {-1, nil, 137, deleted},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := &ended{stubborn{removed: make(chan struct{})}, c.code}
			e := New(Config{Ops: ops.New(ops.Config{CRI: cri.New(runtime, nil)}), Runtime: attached{}, Logger: slog.New(slog.DiscardHandler),
				Pod: func(types.UID) *corev1.Pod { return c.pod }})
			var said bytes.Buffer
			s := &Session{id: "s", e: e, container: "c"}
			code, err := s.Run(t.Context(), Streams{Stderr: &said})
			if err != nil || code != c.wantCode || said.String() != c.want {
				t.Errorf("code %d, want %d; said %q, want %q; %v", code, c.wantCode, said.String(), c.want, err)
			}
		})
	}
}

// IX-05, IX-09: beside the dead, the end of the time limit takes the command away, and says so on a line of its own.
func TestToldOfTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := &ended{stubborn{removed: make(chan struct{})}, 137}
		e := New(Config{Ops: ops.New(ops.Config{CRI: cri.New(runtime, nil)}), Runtime: attached{until: runtime.removed},
			Logger: slog.New(slog.DiscardHandler), Pod: func(types.UID) *corev1.Pod { return &corev1.Pod{} }})
		var said bytes.Buffer
		s := &Session{id: "s", e: e, container: "c", limit: time.Minute}
		code, err := s.Run(t.Context(), Streams{Stdout: &said, TTY: true})
		if want := "\r\nwherry: the command was terminated: the pod's activeDeadlineSeconds are over\r\n"; err != nil || code != 137 || said.String() != want {
			t.Errorf("code %d, said %q, want %q; %v", code, said.String(), want, err)
		}
	})
}
