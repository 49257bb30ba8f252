// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// DefaultRequestTimeout is how long a runtime may take to answer, where [WithRequestTimeout] says nothing else; it is
// the kubelet's.
const DefaultRequestTimeout = 2 * time.Minute

// WithRequestTimeout sets how long the runtime may take to answer one request, beside the time that the request itself
// gives (StopContainer's grace); the making of a sandbox, with the pod's network, may take twice that; zero is
// [DefaultRequestTimeout]. A call that is not answered by then fails with a [NoAnswerError]: one shim or plug-in that
// hangs must not keep its pod waiting for ever. Pulls and commands in containers take as long as they take.
func WithRequestTimeout(d time.Duration) Option {
	return func(c *Client) { c.timeout = cmp.Or(d, DefaultRequestTimeout) }
}

// NoAnswerError says that the runtime has not answered in time. What it has done by then is unknown, and the call may
// be made again: [Unavailable] is true of it, and [Cancelled] is not.
type NoAnswerError struct {
	Call  string // "StopContainer"
	Limit time.Duration
}

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("the container runtime has not answered %s within %s", e.Call, e.Limit)
}

// GRPCStatus makes the error one that a runtime could have given.
func (e *NoAnswerError) GRPCStatus() *status.Status { return status.New(codes.Unavailable, e.Error()) }

// limitOf is how long a request may take, or 0 if as long as it takes. timeout is above zero. (Pure.)
func limitOf(in any, timeout time.Duration) time.Duration {
	switch in := in.(type) {
	case *runtimeapi.PullImageRequest: // which ends when it makes no progress
		return 0
	case *runtimeapi.ExecSyncRequest: // [Client.ExecSync] sees to it
		return 0
	case *runtimeapi.RunPodSandboxRequest:
		return plus(timeout, timeout)
	case *runtimeapi.StopContainerRequest:
		return plus(timeout, wholeSeconds(in.GetTimeout()))
	case *runtimeapi.CheckpointContainerRequest:
		if in.GetTimeout() <= 0 {
			return 0
		}
		return plus(timeout, wholeSeconds(in.GetTimeout()))
	}
	return timeout
}

// wholeSeconds is n seconds, or as long as a duration can be.
func wholeSeconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), math.MaxInt64/int64(time.Second))) * time.Second
}

// plus adds without overflow.
func plus(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// limitedConn is a connection whose calls end in time. Streams have no limit.
type limitedConn struct {
	grpc.ClientConnInterface
	timeout time.Duration
}

// Invoke is part of [grpc.ClientConnInterface].
func (c *limitedConn) Invoke(ctx context.Context, method string, in, out any, opts ...grpc.CallOption) error {
	limit := limitOf(in, c.timeout)
	if limit == 0 {
		return c.ClientConnInterface.Invoke(ctx, method, in, out, opts...)
	}
	over := &NoAnswerError{Call: path.Base(method), Limit: limit}
	end := time.Now().Add(limit)
	limited, cancel := context.WithDeadlineCause(ctx, end, over)
	defer cancel()
	err := c.ClientConnInterface.Invoke(limited, method, in, out, opts...)
	if err == nil || !Cancelled(err) {
		return err
	}
	// The runtime knows the same end, and may say it before the own timer has run.
	if context.Cause(limited) == error(over) || ctx.Err() == nil && !time.Now().Before(end) {
		return over
	}
	return err
}
