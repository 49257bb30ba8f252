// SPDX-License-Identifier: Apache-2.0

package kubeletsocket

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// Connect makes a client of a program that serves a socket. It dials when it is first used, and again, soon and then
// later and later, while nobody serves it.
func Connect(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return Dial(ctx, socket) }),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: dialTimeout,
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 2, Jitter: 0.2,
				MaxDelay: 5 * time.Second}}))
}
