// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"errors"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// Client is a client that calls the fake directly: no connection, no goroutines but those of event streams, which end
// with their contexts. Messages are copied, as a wire would do. Right inside testing/synctest.
func (f *Fake) Client(opts ...cri.Option) *cri.Client {
	return cri.New(runtimeClient{f}, imageClient{f}, opts...)
}

// Dial is a client over gRPC and an in-memory connection. stop ends the server; call it after closing the client.
func (f *Fake) Dial(opts ...cri.Option) (client *cri.Client, stop func(), err error) {
	l := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, f)
	runtimeapi.RegisterImageServiceServer(server, f)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	stop = func() {
		server.Stop()
		<-served
	}
	conn, err := grpc.NewClient("passthrough:///fake",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		stop()
		return nil, nil, err
	}
	return cri.FromConn(conn, opts...), stop, nil
}

// unary is one call as it would be over a connection.
func unary[Req, Resp proto.Message](ctx context.Context, f *Fake, in Req,
	call func(context.Context, Req) (Resp, error)) (Resp, error) {
	in = proto.Clone(in).(Req)
	f.mu.Lock()
	detach := f.detach
	f.mu.Unlock()
	if !detach {
		return copied(call(ctx, in))
	}
	type answer struct {
		resp Resp
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		resp, err := call(context.WithoutCancel(ctx), in)
		done <- answer{resp, err}
	}()
	select {
	case a := <-done:
		return copied(a.resp, a.err)
	case <-ctx.Done():
		var none Resp
		return none, status.FromContextError(ctx.Err()).Err()
	}
}

func copied[Resp proto.Message](resp Resp, err error) (Resp, error) {
	if err != nil {
		var none Resp
		return none, asStatus(err)
	}
	return proto.Clone(resp).(Resp), nil
}

// asStatus gives plain errors the code they would have after a wire.
func asStatus(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Convert(err).Err()
}

func (c runtimeClient) GetContainerEvents(ctx context.Context, in *runtimeapi.GetEventsRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[runtimeapi.ContainerEventResponse], error) {
	s := &eventStream{ctx: ctx, events: make(chan *runtimeapi.ContainerEventResponse), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = c.f.sendEvents(ctx, in, func(e *runtimeapi.ContainerEventResponse) error {
			select {
			case s.events <- proto.Clone(e).(*runtimeapi.ContainerEventResponse):
				return nil
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			}
		})
	}()
	return s, nil
}

// eventStream is the client's end of a direct event stream.
type eventStream struct {
	ctx    context.Context
	events chan *runtimeapi.ContainerEventResponse
	ended  chan struct{}
	err    error // set before ended is closed
}

func (s *eventStream) Recv() (*runtimeapi.ContainerEventResponse, error) {
	select {
	case e := <-s.events:
		return e, nil
	case <-s.ended:
		if s.err == nil {
			return nil, io.EOF
		}
		return nil, s.err
	}
}

func (s *eventStream) Header() (metadata.MD, error) { return nil, nil }
func (s *eventStream) Trailer() metadata.MD         { return nil }
func (s *eventStream) CloseSend() error             { return nil }
func (s *eventStream) Context() context.Context     { return s.ctx }
func (s *eventStream) SendMsg(any) error            { return errors.New("this stream only receives") }
func (s *eventStream) RecvMsg(any) error            { return errors.New("use Recv") }

var (
	_ runtimeapi.RuntimeServiceServer = (*Fake)(nil)
	_ runtimeapi.ImageServiceServer   = (*Fake)(nil)
	_ runtimeapi.RuntimeServiceClient = runtimeClient{}
	_ runtimeapi.ImageServiceClient   = imageClient{}
)
