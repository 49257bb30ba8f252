// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// criProxy serves an in-process connection on a socket, message by message and without knowing the messages, so that
// tools that speak the CRI (crictl, a benchmark) can look into the embedded runtime.
type criProxy struct {
	server *grpc.Server
	socket net.Listener
}

func newCRIProxy(socket net.Listener, to *grpc.ClientConn) *criProxy {
	return &criProxy{socket: socket, server: grpc.NewServer(
		grpc.ForceServerCodecV2(frames{}),
		grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error { return forward(in, to) }),
	)}
}

func (p *criProxy) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.server.Stop)
	defer stop()
	err := p.server.Serve(p.socket)
	if ctx.Err() != nil {
		return nil // Serve returns an error when it is stopped before it has begun
	}
	return err
}

func forward(in grpc.ServerStream, to *grpc.ClientConn) error {
	method, ok := grpc.MethodFromServerStream(in)
	if !ok {
		return status.Error(codes.Internal, "no method")
	}
	ctx, cancel := context.WithCancel(in.Context())
	defer cancel()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md.Copy())
	}
	out, err := to.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method,
		grpc.ForceCodecV2(frames{}))
	if err != nil {
		return err
	}
	go func() {
		if pump(in.RecvMsg, out.SendMsg) == nil {
			_ = out.CloseSend() // always nil for a client stream
		} else {
			cancel()
		}
	}()
	err = pump(out.RecvMsg, in.SendMsg)
	in.SetTrailer(out.Trailer())
	return err
}

// pump copies messages until recv ends; a clean end is nil.
func pump(recv, send func(any) error) error {
	for {
		var frame []byte
		if err := recv(&frame); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := send(&frame); err != nil {
			return err
		}
	}
}

// frames is the codec that leaves messages as bytes.
type frames struct{}

func (frames) Name() string { return "proto" } // what both ends' messages are

func (frames) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
