// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// ExecOptions are a command, and the streams of the client that wants it run. Streams that the client did not ask for
// are nil.
type ExecOptions struct {
	Command        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer // Stderr is nil with a terminal
	TTY            bool
	Resize         <-chan remotecommand.TerminalSize
	// Ended is called once, when nothing of the command is left: when it has ended, also long after Exec has returned.
	Ended func()
}

// execCall bounds a call that is waited for though the client has gone.
const execCall = 2 * time.Minute

// Exec runs a command in a running container, like kubectl exec, and returns its exit code when it has ended and all
// its output is written. When ctx ends, because the client has gone, it returns ctx's error; the command goes on, as
// with Kubernetes, but nothing of it stays in this process except who waits for its end: descriptors and buffers are
// given back (RS-01). What the command prints then goes to a pipe that nobody reads.
//
// The CRI's own exec holds four descriptors and two connections for as long as the command runs.
func (r *Runtime) Exec(ctx context.Context, containerID string, o ExecOptions) (code int, err error) {
	ended := o.Ended
	if ended == nil {
		ended = func() {}
	}
	calls, cancel := context.WithTimeout(namespaces.WithNamespace(context.WithoutCancel(ctx), Namespace), execCall)
	defer cancel()
	id := uuid.NewString()
	p, pipes, err := r.makeExec(calls, containerID, id, o)
	if err != nil {
		ended()
		return 0, fmt.Errorf("failed to exec in container: %w", err)
	}
	// This wait alone outlives the client.
	waiting, leave := context.WithCancel(namespaces.WithNamespace(context.Background(), Namespace))
	over := func() {
		leave()
		pipes.close()
		r.deleteExec(p)
		ended()
	}
	exited, err := p.Wait(waiting)
	if err == nil {
		err = p.Start(calls)
	}
	if err != nil {
		over()
		return 0, fmt.Errorf("failed to exec in container: failed to start exec %q: %w", id, err)
	}
	done := pipes.join(ctx, o, func() error { return p.CloseIO(waiting, containerd.WithStdinCloser) },
		func(s remotecommand.TerminalSize) error { return p.Resize(waiting, uint32(s.Width), uint32(s.Height)) })
	select {
	case status := <-exited:
		select {
		case <-done: // what else writes to the command's output is waited for
		case <-ctx.Done():
		}
		over()
		code, _, err := status.Result()
		return int(code), err
	case <-ctx.Done():
		pipes.close()
		go func() {
			defer over()
			select {
			case <-exited:
			case <-r.done:
				leave()
				<-exited
			}
		}()
		return 0, ctx.Err()
	}
}

// makeExec has a container's shim prepare a command.
func (r *Runtime) makeExec(ctx context.Context, containerID, id string,
	o ExecOptions) (containerd.Process, *execPipes, error) {
	c, err := r.client.LoadContainer(ctx, containerID)
	if err != nil {
		return nil, nil, err
	}
	spec, err := c.Spec(ctx)
	if err != nil {
		return nil, nil, err
	}
	task, err := c.Task(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	process := spec.Process
	process.Terminal, process.Args, process.CommandLine = o.TTY, o.Command, ""
	if o.TTY {
		process.Env = withTerm(process.Env)
	}
	pipes, err := newExecPipes(r.dirs.run, id, o.TTY, o.Stdin != nil)
	if err != nil {
		return nil, nil, err
	}
	p, err := task.Exec(ctx, id, process, func(string) (cio.IO, error) { return pipes, nil })
	if err != nil {
		pipes.close()
		return nil, nil, fmt.Errorf("failed to create exec %q: %w", id, err)
	}
	return p, pipes, nil
}

// withTerm says what terminal it is, as the CRI does.
func withTerm(env []string) []string {
	const name = "TERM="
	out := make([]string, 0, len(env)+1)
	for _, v := range env {
		if len(v) < len(name) || v[:len(name)] != name {
			out = append(out, v)
		}
	}
	return append(out, name+"xterm")
}

// deleteExec makes the shim forget a command that has ended, or could not be started.
func (r *Runtime) deleteExec(p containerd.Process) {
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(context.Background(), Namespace), execCall)
	defer cancel()
	if _, err := p.Delete(ctx); err != nil && !errdefs.IsNotFound(err) && !errors.Is(err, context.Canceled) {
		r.log.Debug("a command that has ended was not removed from its shim", "exec", p.ID(), "err", err)
	}
}
