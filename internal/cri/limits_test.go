// SPDX-License-Identifier: Apache-2.0

package cri_test

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// hung is a runtime that answers nothing before its caller has gone, as one whose shim hangs.
type hung struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
	fails error // what it answers at once; nil: nothing
}

func (h *hung) wait(ctx context.Context) error {
	if h.fails != nil {
		return h.fails
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hung) StopContainer(ctx context.Context,
	_ *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	return nil, h.wait(ctx)
}

func (h *hung) RunPodSandbox(ctx context.Context,
	_ *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	return nil, h.wait(ctx)
}

func (h *hung) ContainerStatus(ctx context.Context,
	_ *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	return nil, h.wait(ctx)
}

func (h *hung) ExecSync(ctx context.Context, _ *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return nil, h.wait(ctx)
}

func (h *hung) PullImage(ctx context.Context, _ *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	return nil, h.wait(ctx)
}

func (h *hung) CheckpointContainer(ctx context.Context,
	_ *runtimeapi.CheckpointContainerRequest) (*runtimeapi.CheckpointContainerResponse, error) {
	return nil, h.wait(ctx)
}

// client connects to h, in a bubble of synctest.
func (h *hung) client(t *testing.T, opts ...cri.Option) *cri.Client {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	s := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(s, h)
	runtimeapi.RegisterImageServiceServer(s, h)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///hung", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	c := cri.FromConn(conn, opts...)
	t.Cleanup(func() {
		_ = c.Close()
		s.Stop()
		<-served
	})
	return c
}

// A runtime that does not answer holds up each call for a time of its own, and says which call that was (RS-05).
func TestLimits(t *testing.T) {
	stop := func(seconds int64) func(context.Context, *cri.Client) error {
		return func(ctx context.Context, c *cri.Client) error {
			_, err := c.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: "x", Timeout: seconds})
			return err
		}
	}
	checkpoint := func(seconds int64) func(context.Context, *cri.Client) error {
		return func(ctx context.Context, c *cri.Client) error {
			_, err := c.Runtime.CheckpointContainer(ctx,
				&runtimeapi.CheckpointContainerRequest{ContainerId: "x", Timeout: seconds})
			return err
		}
	}
	for _, tt := range []struct {
		name string
		opts []cri.Option
		call func(context.Context, *cri.Client) error
		want time.Duration // 0: as long as the caller waits, a day
		says string
	}{
		{"status", nil, func(ctx context.Context, c *cri.Client) error {
			_, err := c.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: "x"})
			return err
		}, 2 * time.Minute, "the container runtime has not answered ContainerStatus within 2m0s"},
		{"of a metered client", nil, func(ctx context.Context, c *cri.Client) error {
			m := c.Metered(func(_ string, _ time.Duration, err error) {
				if !cri.Unavailable(err) {
					t.Errorf("reported %v", err)
				}
			})
			_, err := m.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: "x"})
			return err
		}, 2 * time.Minute, "not answered ContainerStatus"},
		{"another time", []cri.Option{cri.WithRequestTimeout(time.Second)},
			func(ctx context.Context, c *cri.Client) error {
				_, err := c.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: "x"})
				return err
			}, time.Second, "within 1s"},
		{"sandbox", nil, func(ctx context.Context, c *cri.Client) error {
			_, err := c.Runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{})
			return err
		}, 4 * time.Minute, "RunPodSandbox within 4m0s"},
		{"stop at once", nil, stop(0), 2 * time.Minute, "StopContainer within 2m0s"},
		{"stop with grace", nil, stop(600), 12 * time.Minute, "StopContainer within 12m0s"},
		{"stop with a grace without end", nil, stop(math.MaxInt64), 0, ""},
		{"stop with a grace that is none", nil, stop(math.MinInt64), 2 * time.Minute, "StopContainer"},
		{"checkpoint", nil, checkpoint(0), 0, ""},
		{"checkpoint in time", nil, checkpoint(10), 130 * time.Second, "CheckpointContainer"},
		{"command", nil, func(ctx context.Context, c *cri.Client) error {
			_, err := c.ExecSync(ctx, "x", []string{"sleep"}, 0)
			return err
		}, 0, ""},
		{"pull", nil, func(ctx context.Context, c *cri.Client) error {
			_, err := c.Images.PullImage(ctx, &runtimeapi.PullImageRequest{})
			return err
		}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := (&hung{}).client(t, tt.opts...)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				began := time.Now()
				err := tt.call(ctx, c)
				took := time.Since(began).Round(time.Second)
				if tt.want == 0 {
					if took != 24*time.Hour || !cri.Cancelled(err) || cri.Unavailable(err) {
						t.Errorf("%v after %s, want the caller's own deadline", err, took)
					}
					return
				}
				if took != tt.want || err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v after %s, want %q after %s", err, took, tt.says, tt.want)
				}
				if cri.Cancelled(err) || !cri.Unavailable(err) || cri.Message(err) != err.Error() {
					t.Errorf("%v: cancelled %t, unavailable %t, message %q", err, cri.Cancelled(err),
						cri.Unavailable(err), cri.Message(err))
				}
			})
		})
	}
}

// Whoever gives a call up, and whatever a runtime answers, is told as before.
func TestLimitsLeaveOtherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(ctx context.Context, c *cri.Client) error {
			_, err := c.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: "x"})
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var late *cri.NoAnswerError
		if err := ask(ctx, (&hung{}).client(t)); !cri.Cancelled(err) || errors.As(err, &late) {
			t.Errorf("given up by its caller: %v", err)
		}
		// containerd's own deadline, of a shim that does not answer
		slow := &hung{fails: status.Error(codes.DeadlineExceeded, "shim")}
		if err := ask(t.Context(), slow.client(t)); !cri.Cancelled(err) || errors.As(err, &late) {
			t.Errorf("a deadline of the runtime's: %v", err)
		}
		if err := ask(t.Context(), (&hung{fails: status.Error(codes.NotFound, "x")}).client(t)); !cri.NotFound(err) {
			t.Errorf("not found: %v", err)
		}
	})
}
