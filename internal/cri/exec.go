// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// execSlack is how much longer than the command's own time-out we wait for the runtime to say that it killed it.
const execSlack = 15 * time.Second

// ExecResult is what a finished command left.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// Output is stdout followed by stderr, as probe messages show it.
func (r ExecResult) Output() []byte {
	return append(append([]byte(nil), r.Stdout...), r.Stderr...)
}

// ExecSync runs cmd in a running container and waits for its end. A non-zero exit is a result, not an error. timeout
// zero means none; CRI counts whole seconds, so a part of one is rounded up. A command that took too long gives an
// [*ExecTimeoutError].
func (c *Client) ExecSync(ctx context.Context, containerID string, cmd []string,
	timeout time.Duration) (ExecResult, error) {
	if len(cmd) == 0 {
		return ExecResult{}, errors.New("no command to run in the container")
	}
	call := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		call, cancel = context.WithTimeout(ctx, timeout+execSlack)
		defer cancel()
	}
	r, err := c.Runtime.ExecSync(call, &runtimeapi.ExecSyncRequest{
		ContainerId: containerID,
		Cmd:         cmd,
		Timeout:     seconds(timeout),
	})
	switch {
	case err == nil:
		return ExecResult{Stdout: r.GetStdout(), Stderr: r.GetStderr(), ExitCode: r.GetExitCode()}, nil
	case ctx.Err() != nil:
		return ExecResult{}, fmt.Errorf("command in container %s: %w", containerID, context.Cause(ctx))
	case timeout > 0 && code(err) == codes.DeadlineExceeded:
		return ExecResult{}, &ExecTimeoutError{Cmd: cmd, Timeout: timeout}
	}
	return ExecResult{}, fmt.Errorf("command in container %s: %w", containerID, err)
}

// seconds rounds up to whole ones: cutting 500ms to 0 would mean "no limit" for exec and "kill at once" for stop.
func seconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d + time.Second - 1) / time.Second)
}
