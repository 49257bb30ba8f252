// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/go-runc"
)

// slowRunc is a program in runc's place, which starts a container when the gate is opened; the container ends with 7
// when its own is.
const slowRunc = `#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in --pid-file) pid=$2 ;; esac
	shift
done
read go <%[1]s/gate
sh -c 'read go <%[1]s/end; exit 7' >/dev/null 2>&1 &
printf %%s "$!" >"$pid"
`

// standIn makes a service whose runc is slow, and a container that is created there.
func standIn(t *testing.T) (s *service, dir string) {
	t.Helper()
	dir = t.TempDir()
	pipesIn(t, dir, "gate", "end")
	program := filepath.Join(dir, "runc")
	if err := os.WriteFile(program, fmt.Appendf(nil, slowRunc, dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"linux":{"namespaces":[{"type":"pid"}]}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	c := collecting(t)
	runc.Monitor = c
	log := &logger{}
	s = &service{
		namespace: "n", log: log, children: c, events: newEvents(filepath.Join(dir, "none.sock"), "n", log),
		leave: func() {}, containers: map[string]*container{}, making: map[string]bool{},
	}
	o, err := pack(&options.Options{BinaryName: program, Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), &taskapi.CreateTaskRequest{ID: "c", Bundle: dir, Options: o}); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func open(t *testing.T, gate string) {
	t.Helper()
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
}

// SC-19, RS-07: a server that comes back while its container is still being started is not told that it is created,
// which it would start again, nor that nothing is there: it hears what becomes of it.
func TestStartIsSlow(t *testing.T) {
	s, dir := standIn(t)
	type started struct {
		r   *taskapi.StartResponse
		err error
	}
	begun := make(chan started, 1)
	go func() {
		r, err := s.Start(t.Context(), &taskapi.StartRequest{ID: "c"})
		begun <- started{r, err}
	}()
	c, err := s.container("c")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the start has begun", c.init.beginning)

	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if r, err := s.State(soon, &taskapi.StateRequest{ID: "c"}); !errors.Is(errgrpc.ToNative(err),
		context.DeadlineExceeded) {
		t.Errorf("its state is told: %v, %v", r, err)
	}
	if r, err := s.Pids(t.Context(), &taskapi.PidsRequest{ID: "c"}); err != nil || len(r.Processes) != 1 {
		t.Errorf("its processes: %v, %v; want one, that it is not taken for a task that was left behind", r, err)
	}
	if _, err := s.Create(t.Context(), &taskapi.CreateTaskRequest{ID: "c", Bundle: dir}); !errdefs.IsAlreadyExists(
		errgrpc.ToNative(err)) {
		t.Errorf("created again: %v", err)
	}
	state := make(chan *taskapi.StateResponse, 1)
	go func() {
		r, _ := s.State(t.Context(), &taskapi.StateRequest{ID: "c"})
		state <- r
	}()
	deleted := make(chan error, 1)
	go func() {
		_, err := s.Delete(t.Context(), &taskapi.DeleteRequest{ID: "c"})
		deleted <- err
	}()

	open(t, filepath.Join(dir, "gate"))
	if r := within(t, "the end of the start", begun); r.err != nil || r.r.Pid == 0 {
		t.Fatalf("Start: %v, %v", r.r, r.err)
	}
	if r := within(t, "its state", state); r.GetStatus() != task.Status_RUNNING {
		t.Errorf("it is %v, want running", r.GetStatus())
	}
	if err := within(t, "an answer to Delete", deleted); !errdefs.IsFailedPrecondition(errgrpc.ToNative(err)) {
		t.Errorf("deleted while it was started: %v", err)
	}
	if _, err := s.Start(t.Context(), &taskapi.StartRequest{ID: "c"}); !errdefs.IsFailedPrecondition(
		errgrpc.ToNative(err)) {
		t.Errorf("started again: %v", err)
	}
	open(t, filepath.Join(dir, "end"))
	if r, err := s.Wait(t.Context(), &taskapi.WaitRequest{ID: "c"}); err != nil || r.ExitStatus != 7 {
		t.Errorf("Wait: %v, %v, want 7", r, err)
	}
	if r, err := s.Delete(t.Context(), &taskapi.DeleteRequest{ID: "c"}); err != nil || r.ExitStatus != 7 {
		t.Errorf("Delete: %v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(dir, goneFile)); err != nil {
		t.Errorf("nothing is left, which is not noted: %v", err)
	}
}

// RS-07: a container that was created and never started is ended by a kill, and never starts after that.
func TestCreatedIsKilled(t *testing.T) {
	s, _ := standIn(t)
	if _, err := s.Kill(t.Context(), &taskapi.KillRequest{ID: "c", Signal: uint32(deathSignal),
		All: true}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Wait(t.Context(), &taskapi.WaitRequest{ID: "c"}); err != nil || r.ExitStatus != 137 {
		t.Errorf("Wait: %v, %v", r, err)
	}
	if _, err := s.Start(t.Context(), &taskapi.StartRequest{ID: "c"}); !errdefs.IsFailedPrecondition(
		errgrpc.ToNative(err)) {
		t.Errorf("started after its end: %v", err)
	}
	if r, err := s.State(t.Context(), &taskapi.StateRequest{ID: "c"}); err != nil || r.Status != task.Status_STOPPED {
		t.Errorf("State: %v, %v", r, err)
	}
}

// unread begins a process in the container, whose output nobody opens, as after a call that was given up. What is given
// is what its start comes to.
func unread(t *testing.T, s *service, dir, id string) <-chan error {
	t.Helper()
	pipesIn(t, dir, id)
	spec, err := pack(&options.ProcessDetails{})
	if err != nil {
		t.Fatal(err)
	}
	spec.Value = []byte(`{"args":["true"],"cwd":"/"}`)
	if _, err := s.Exec(t.Context(), &taskapi.ExecProcessRequest{
		ID: "c", ExecID: id, Stdout: filepath.Join(dir, id), Spec: spec,
	}); err != nil {
		t.Fatal(err)
	}
	came := make(chan error, 1)
	go func() {
		_, err := s.Start(t.Context(), &taskapi.StartRequest{ID: "c", ExecID: id})
		came <- err
	}()
	p, err := s.containers["c"].process(id)
	if err != nil {
		t.Fatal(err)
	}
	for !p.beginning() { // nothing tells of it; it comes at once
		runtime.Gosched()
	}
	return came
}

// PL-10, RS-02: a probe or hook that was given up while it was being started holds up neither the end of its container
// nor its own, though nobody will ever read what it writes.
func TestUnreadExecHoldsNothingUp(t *testing.T) {
	s, dir := standIn(t)
	begun := make(chan error, 1)
	go func() {
		_, err := s.Start(t.Context(), &taskapi.StartRequest{ID: "c"})
		begun <- err
	}()
	open(t, filepath.Join(dir, "gate"))
	if err := within(t, "the start of the container", begun); err != nil {
		t.Fatal(err)
	}

	killed := unread(t, s, dir, "killed")
	_, _ = s.Kill(t.Context(), &taskapi.KillRequest{ID: "c", ExecID: "killed", Signal: uint32(deathSignal)})
	if err := within(t, "the end of a process that was killed before it was started", killed); err == nil {
		t.Error("a process that nobody reads was started")
	}
	if _, err := s.Delete(t.Context(), &taskapi.DeleteRequest{ID: "c", ExecID: "killed"}); err != nil {
		t.Errorf("its deletion: %v", err)
	}

	held := unread(t, s, dir, "held")
	ended := make(chan uint32, 1)
	go func() {
		if r, err := s.Wait(t.Context(), &taskapi.WaitRequest{ID: "c"}); err == nil {
			ended <- r.ExitStatus
		}
	}()
	open(t, filepath.Join(dir, "end"))
	if status := within(t, "the end of the container", ended); status != 7 {
		t.Errorf("the container ended with %d", status)
	}
	if err := within(t, "the end of a process in it", held); err == nil {
		t.Error("a process was started in a container that had ended")
	}
}

// PL-10, RS-02: a process that is killed while runc starts it does not outlive that, though there is nothing to be killed
// yet; one that is killed when it runs ends by that.
func TestKilledWhileItIsStarted(t *testing.T) {
	s, dir := standIn(t)
	begin := func(exec string) (gate *os.File, came <-chan error) {
		t.Helper()
		begun := make(chan error, 1)
		go func() {
			_, err := s.Start(t.Context(), &taskapi.StartRequest{ID: "c", ExecID: exec})
			begun <- err
		}()
		// It is open when runc reads it.
		gate, err := os.OpenFile(filepath.Join(dir, "gate"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		return gate, begun
	}
	start := func(gate *os.File, came <-chan error) {
		t.Helper()
		if _, err := gate.WriteString("go\n"); err != nil {
			t.Fatal(err)
		}
		gate.Close()
		if err := within(t, "the start", came); err != nil {
			t.Fatal(err)
		}
	}
	start(begin(""))
	spec, err := pack(&options.ProcessDetails{})
	if err != nil {
		t.Fatal(err)
	}
	spec.Value = []byte(`{"args":["true"],"cwd":"/"}`)
	for _, during := range []bool{true, false} {
		id := fmt.Sprint("during-", during)
		if _, err := s.Exec(t.Context(), &taskapi.ExecProcessRequest{ID: "c", ExecID: id, Spec: spec}); err != nil {
			t.Fatal(err)
		}
		kill := func() error {
			_, err := s.Kill(t.Context(), &taskapi.KillRequest{ID: "c", ExecID: id, Signal: uint32(deathSignal)})
			return errgrpc.ToNative(err)
		}
		gate, came := begin(id)
		if during {
			if err := kill(); !errdefs.IsFailedPrecondition(err) {
				t.Errorf("killed while it is started: %v", err)
			}
		}
		start(gate, came)
		if !during {
			if err := kill(); err != nil {
				t.Errorf("killed when it runs: %v", err)
			}
		}
		ended := make(chan uint32, 1)
		go func() {
			if r, err := s.Wait(t.Context(), &taskapi.WaitRequest{ID: "c", ExecID: id}); err == nil {
				ended <- r.ExitStatus
			}
		}()
		if status := within(t, "the end of "+id, ended); status != uint32(killedStatus) {
			t.Errorf("%s ended with %d", id, status)
		}
	}
	open(t, filepath.Join(dir, "end"))
	if r, err := s.Wait(t.Context(), &taskapi.WaitRequest{ID: "c"}); err != nil || r.ExitStatus != 7 {
		t.Errorf("Wait: %v, %v", r, err)
	}
}
