// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"time"

	"google.golang.org/grpc"
)

// Metered returns a client on the same connection that reports each call to the runtime when it has ended, by its full
// gRPC method. Streams are not reported. A client that was made by [New] has no connection: it is returned as it is.
// The connection is still the first client's to close.
func (c *Client) Metered(report func(method string, took time.Duration, err error)) *Client {
	if c.conn == nil {
		return c
	}
	out := *c
	out.callThrough(&meteredConn{c.limited(), report})
	return &out
}

// meteredConn is a connection that reports.
type meteredConn struct {
	grpc.ClientConnInterface
	report func(method string, took time.Duration, err error)
}

// Invoke is part of [grpc.ClientConnInterface].
func (c *meteredConn) Invoke(ctx context.Context, method string, in, out any, opts ...grpc.CallOption) error {
	began := time.Now()
	err := c.ClientConnInterface.Invoke(ctx, method, in, out, opts...)
	c.report(method, time.Since(began), err)
	return err
}
