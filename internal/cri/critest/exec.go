// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest/script"
)

// ExecSync acts the command's script, or what Config.Exec says.
func (f *Fake) ExecSync(ctx context.Context, r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if err := f.enter(ctx, "ExecSync", r); err != nil {
		return nil, err
	}
	c, info, err := f.runningContainer(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	a := f.answer(info, r.GetCmd())
	if a.Err != nil {
		return nil, a.Err
	}
	if a.After > 0 {
		over := time.After(a.After)
		var late <-chan time.Time
		if r.GetTimeout() > 0 {
			late = time.After(time.Duration(r.GetTimeout()) * time.Second)
		}
		select {
		case <-over:
		case <-late:
			return nil, status.Errorf(codes.DeadlineExceeded,
				"failed to exec in container: timeout %ds exceeded: context deadline exceeded", r.GetTimeout())
		case <-c.ended:
			a.ExitCode = exitKilled
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-f.downs():
			return nil, errDown()
		}
	}
	return &runtimeapi.ExecSyncResponse{Stdout: []byte(a.Stdout), Stderr: []byte(a.Stderr), ExitCode: a.ExitCode}, nil
}

// answer says what a command does.
func (f *Fake) answer(info Info, cmd []string) ExecAnswer {
	if f.config.Exec != nil {
		if a, ok := f.config.Exec(info, cmd); ok {
			return a
		}
	}
	s, err := script.Parse(cmd)
	if err != nil {
		return ExecAnswer{Stderr: err.Error() + "\n", ExitCode: 2}
	}
	lines := func(l []string) string {
		if len(l) == 0 {
			return ""
		}
		return strings.Join(l, "\n") + "\n"
	}
	if s.Show == "pidns" {
		s.Stdout = append(s.Stdout, info.PIDNamespace)
	}
	// A command without a script ends at once: only run_for=… makes it last.
	return ExecAnswer{Stdout: lines(s.Stdout), Stderr: lines(s.Stderr), ExitCode: s.ExitCode, After: s.RunFor}
}

func (f *Fake) runningContainer(id string) (*container, Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.w.container(id)
	if err != nil {
		return nil, Info{}, err
	}
	if !c.running() {
		return nil, Info{}, status.Errorf(codes.Unknown, "container is in %s state", c.state())
	}
	return c, c.info(f.w), nil
}

// Exec gives the URL of Config.Streams.
func (f *Fake) Exec(ctx context.Context, r *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if err := f.enter(ctx, "Exec", r); err != nil {
		return nil, err
	}
	if _, _, err := f.runningContainer(r.GetContainerId()); err != nil {
		return nil, err
	}
	if f.config.Streams == nil {
		return nil, errNoStreams()
	}
	return f.config.Streams.GetExec(r)
}

// Attach gives the URL of Config.Streams.
func (f *Fake) Attach(ctx context.Context, r *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if err := f.enter(ctx, "Attach", r); err != nil {
		return nil, err
	}
	if _, _, err := f.runningContainer(r.GetContainerId()); err != nil {
		return nil, err
	}
	if f.config.Streams == nil {
		return nil, errNoStreams()
	}
	return f.config.Streams.GetAttach(r)
}

// PortForward gives the URL of Config.Streams.
func (f *Fake) PortForward(ctx context.Context,
	r *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	if err := f.enter(ctx, "PortForward", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	_, err := f.w.readySandbox(r.GetPodSandboxId())
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if f.config.Streams == nil {
		return nil, errNoStreams()
	}
	return f.config.Streams.GetPortForward(r)
}

func errNoStreams() error {
	return status.Error(codes.Unimplemented, "this runtime serves no streams")
}
