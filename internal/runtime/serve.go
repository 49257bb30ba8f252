// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/ttrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// maxMessage is the largest gRPC message, as containerd and the kubelet have it.
const maxMessage = 16 << 20

// eventServer receives the shims' events: exits, OOM kills. Shims of a former process connect again by themselves.
type eventServer struct {
	server *ttrpc.Server
	served chan struct{}
}

func serveEvents(ctx context.Context, d *daemon, path string) (*eventServer, error) {
	events, err := instance[interface {
		RegisterTTRPC(*ttrpc.Server) error
	}](d, plugins.GRPCPlugin, "events")
	if err != nil {
		return nil, err
	}
	server, err := ttrpc.NewServer(ttrpc.WithServerHandshaker(ttrpc.UnixSocketRequireSameUser()))
	if err != nil {
		return nil, err
	}
	if err := events.RegisterTTRPC(server); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket for shim events: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket for shim events: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket for shim events: %w", err)
	}
	s := &eventServer{server: server, served: make(chan struct{})}
	go func() {
		defer close(s.served)
		_ = server.Serve(ctx, l) // ends with ErrServerClosed, and only by stop
	}()
	return s, nil
}

func (s *eventServer) stop() {
	_ = s.server.Close()
	<-s.served
}

// criServer serves the CRI in memory.
type criServer struct {
	server *grpc.Server
	conn   *grpc.ClientConn
	served chan struct{}
	calls  *sync.RWMutex // read-locked by every call under way
}

func serveCRI(d *daemon, taps *tap.Taps, own *ownImages, around func(context.Context, any,
	grpc.UnaryHandler) (any, error)) (*criServer, error) {
	cri, err := instance[interface{ Register(*grpc.Server) error }](d, plugins.GRPCPlugin, "cri")
	if err != nil {
		return nil, err
	}
	calls := new(sync.RWMutex)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.UnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			calls.RLock()
			defer calls.RUnlock()
			if err := streamless(req); err != nil {
				return nil, err
			}
			if err := own.before(ctx, req); err != nil {
				return nil, err
			}
			return around(ctx, req, func(ctx context.Context,
				req any) (any, error) {
				return aroundTaps(ctx, req, handle, taps)
			})
		}))
	if err := cri.Register(server); err != nil {
		return nil, err
	}
	l := bufconn.Listen(256 << 10)
	conn, err := grpc.NewClient("passthrough:///embedded-containerd",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	s := &criServer{server: server, conn: conn, served: make(chan struct{}), calls: calls}
	go func() {
		defer close(s.served)
		_ = server.Serve(l) // ends by stop only
	}()
	return s, nil
}

// stop cancels all calls and waits for them to return, for a while: a call that is stuck in the kernel must not keep
// the process from ending. Streams are not waited for: containerd's event stream notices only with the next event.
func (s *criServer) stop(limit time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.conn.Close()
		s.server.Stop()
		<-s.served
		s.calls.Lock()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
