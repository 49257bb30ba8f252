// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// lackingRuntime stands in front of a runtime's socket and lacks what that has: it serves the CRI alone, and refuses
// calls.
type lackingRuntime struct {
	socket string
	server *grpc.Server
	to     *grpc.ClientConn
	// refuse looks at a call's name, such as "CreateContainer", and its request, and returns the error it is answered
	// with; nil lets it through.
	refuse atomic.Pointer[func(call string, request []byte) error]
}

// newLackingRuntime serves on a socket until it is closed.
func newLackingRuntime(socket, behind string) (*lackingRuntime, error) {
	to, err := grpc.NewClient("passthrough:///"+behind, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return nil, err
	}
	p := &lackingRuntime{socket: socket, to: to}
	return p, p.open()
}

// open serves, anew after stop.
func (p *lackingRuntime) open() error {
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}),
		grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error { return p.serve(in) }))
	p.server = s
	go func() { _ = s.Serve(l) }() // until stop
	return nil
}

// stop ends all calls, and takes the socket away.
func (p *lackingRuntime) stop() { p.server.Stop() }

func (p *lackingRuntime) close() {
	p.stop()
	_ = p.to.Close()
}

func (p *lackingRuntime) serve(in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	if !strings.HasPrefix(method, "/runtime.v1.") {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	var request []byte
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	if refuse := p.refuse.Load(); refuse != nil {
		if err := (*refuse)(method[strings.LastIndex(method, "/")+1:], request); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(in.Context())
	defer cancel()
	out, err := p.to.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, grpc.ForceCodecV2(bytesCodec{}))
	if err != nil {
		return err
	}
	if err := errors.Join(out.SendMsg(&request), out.CloseSend()); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for {
		var answer []byte
		if err := out.RecvMsg(&answer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := in.SendMsg(&answer); err != nil {
			return err
		}
	}
}

// bytesCodec leaves messages as they are.
type bytesCodec struct{}

// Name implements encoding.CodecV2.
func (bytesCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
