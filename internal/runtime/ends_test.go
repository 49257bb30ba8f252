// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	tasktypes "github.com/containerd/containerd/api/types/task"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// SC-19: how a container ended is known whenever that was: while no containerd ran, and while one was starting.
func TestEndIsKnown(t *testing.T) {
	for name, early := range map[string]bool{"before the start": true, "during the start": false} {
		t.Run(name, func(t *testing.T) {
			dir := dataFolder(t)
			c := startChild(t, dir)
			alive := startedPid(t, dir, c.id)
			if err := c.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = c.cmd.Wait()
			if early {
				killAndAwait(t, alive)
			}
			r, err := claim(Config{DataDir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			if err := r.prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !early {
				if len(r.ends.waiting) == 0 {
					t.Fatal("nobody waits for the container's end")
				}
				killAndAwait(t, alive)
			}
			if err := r.launch(t.Context()); err != nil {
				t.Fatal(err)
			}
			p := &pod{t: t, r: r, cri: criapi.NewRuntimeServiceClient(r.Conn()), id: c.sandbox}
			if s := p.status(c.id); s.State != criapi.ContainerState_CONTAINER_EXITED || s.ExitCode != 137 {
				t.Errorf("state %v, exit code %d, want exited with 137", s.State, s.ExitCode)
			}
			p.stop()
		})
	}
}

// startedPid reads a container's process id from its bundle.
func startedPid(t *testing.T, dir, id string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dirsOf(dir).run, taskPlugin, Namespace, id, "init.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// killAndAwait kills a process and waits until it is gone. Its shim has heard of it then.
func killAndAwait(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := awaitGone(t.Context(), []int{fd}); err != nil {
		t.Fatal(err)
	}
}

// forgetful is a tasks service that looks, when it is told to forget a container, for what is noted of its end.
type forgetful struct {
	tasks.TasksClient
	dir   string
	state tasktypes.Status
	at    time.Time
	found *end
}

func (f *forgetful) Get(context.Context, *tasks.GetRequest, ...grpc.CallOption) (*tasks.GetResponse, error) {
	p := &tasktypes.Process{Status: f.state, ExitStatus: 3}
	if f.state == tasktypes.Status_STOPPED {
		p.ExitedAt = timestamppb.New(f.at)
	}
	return &tasks.GetResponse{Process: p}, nil
}

func (f *forgetful) Start(context.Context, *tasks.StartRequest, ...grpc.CallOption) (*tasks.StartResponse, error) {
	return &tasks.StartResponse{}, nil
}

func (f *forgetful) Delete(context.Context, *tasks.DeleteTaskRequest, ...grpc.CallOption) (_ *tasks.DeleteResponse, err error) {
	f.found, err = noted(f.dir)
	return &tasks.DeleteResponse{}, err
}

// SC-19: a shim is told to forget a container only when its end is noted.
func TestNotedBeforeForgotten(t *testing.T) {
	d := dirsOf(t.TempDir())
	dir := filepath.Join(d.root, criPlugin, "containers", "c1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	inner := &forgetful{dir: dir, state: tasktypes.Status_RUNNING, at: time.Unix(1700000000, 5).UTC()}
	wrapped, err := wrapTasks(inner, d, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	forget := func() {
		t.Helper()
		if _, err := wrapped.Delete(t.Context(), &tasks.DeleteTaskRequest{ContainerID: "c1"}); err != nil {
			t.Fatal(err)
		}
	}
	if forget(); inner.found != nil {
		t.Errorf("noted of one that runs: %+v", inner.found)
	}
	inner.state = tasktypes.Status_STOPPED
	if forget(); inner.found == nil || *inner.found != (end{At: inner.at, Code: 3}) {
		t.Errorf("noted: %+v, want code 3 at %s", inner.found, inner.at)
	}
	for _, start := range []*tasks.StartRequest{{ContainerID: "c1", ExecID: "e"}, {ContainerID: "c2"}} {
		_, _ = wrapped.Start(t.Context(), start) // it is no error
	}
	if forget(); inner.found == nil || inner.found.Ran {
		t.Errorf("noted of one whose start failed: %+v", inner.found)
	}
	_, _ = wrapped.Start(t.Context(), &tasks.StartRequest{ContainerID: "c1"})
	if forget(); inner.found == nil || !inner.found.Ran {
		t.Errorf("noted of one that was started: %+v", inner.found)
	}
	if how, err := noted(dir); how == nil || err != nil {
		t.Errorf("before it is started again: %v, %v", how, err)
	}
	_, _ = wrapped.Start(t.Context(), &tasks.StartRequest{ContainerID: "c1"})
	if how, err := noted(dir); how != nil || err != nil {
		t.Errorf("of one that was started again an earlier end is noted: %v, %v", how, err)
	}
	if _, err := wrapTasks("something else", d, nil); err == nil {
		t.Error("something else was taken for the tasks service")
	}
}
