// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NotFound says that the sandbox, container or image the call named does not exist.
func NotFound(err error) bool { return code(err) == codes.NotFound }

// Unimplemented says that the runtime does not know the call (or the mode) at all; asking again is no use.
func Unimplemented(err error) bool { return code(err) == codes.Unimplemented }

// Unavailable says that the runtime is away or not ready yet: the call may be made again, and what it did is unknown.
func Unavailable(err error) bool {
	// containerd 1.6 answers "server is not initialized yet" without a code.
	return code(err) == codes.Unavailable || code(err) == codes.Unknown &&
		strings.Contains(message(err), "not initialized yet")
}

// AlreadyExists says that the name of a sandbox or container (with its attempt) is taken, be it by one that exists or
// by a create under way.
func AlreadyExists(err error) bool {
	switch code(err) {
	case codes.AlreadyExists:
		return true
	case codes.FailedPrecondition, codes.Unknown, codes.Aborted:
		// containerd and CRI-O reserve names in a registrar whose error has no code of its own.
		m := message(err)
		return strings.Contains(m, "is reserved for") || strings.Contains(m, "name is reserved") ||
			strings.Contains(m, "failed to reserve")
	}
	return false
}

// Cancelled says that the caller gave up on the call, by cancelling or by its own deadline. What the runtime did by
// then is unknown: cancelled is not undone.
func Cancelled(err error) bool {
	c := code(err)
	return c == codes.Canceled || c == codes.DeadlineExceeded ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Message is the runtime's own text for err, without gRPC's "rpc error: code = …" in front: what a status or an event
// should show a user.
func Message(err error) string {
	if err == nil {
		return ""
	}
	return message(err)
}

// ExecTimeoutError is returned by [Client.ExecSync] when the command did not end in time and was killed.
type ExecTimeoutError struct {
	Cmd     []string
	Timeout time.Duration
}

func (e *ExecTimeoutError) Error() string {
	return fmt.Sprintf("command %q timed out after %s", strings.Join(e.Cmd, " "), e.Timeout)
}

func code(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	return status.Code(unwrapStatus(err))
}

func message(err error) string {
	inner := unwrapStatus(err)
	s, ok := status.FromError(inner)
	if !ok || inner == nil {
		return err.Error()
	}
	// Keep what our own wrapping put in front of the gRPC error.
	return strings.Replace(err.Error(), inner.Error(), s.Message(), 1)
}

// unwrapStatus finds the error in the chain that carries a gRPC status; status.FromError would put our wrapping into
// the message with "rpc error" in its middle.
func unwrapStatus(err error) error {
	var carrier interface{ GRPCStatus() *status.Status }
	if errors.As(err, &carrier) {
		if e, ok := carrier.(error); ok {
			return e
		}
	}
	return err
}
