// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	eventstypes "github.com/containerd/containerd/api/events"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// service serves containerd's task API (runtime/task/v3) for all tasks of one pod.
type service struct {
	namespace string
	front     string // the program that holds namespaces
	log       *logger
	events    *events
	children  *children
	leave     func() // ends the shim

	mu         sync.Mutex
	containers map[string]*container
	making     map[string]bool // ids of those that are being created
	asked      bool            // a signal has asked the shim to end
}

var _ taskapi.TTRPCTaskService = (*service)(nil)

func (s *service) container(id string) (*container, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.containers[id]; c != nil {
		return c, nil
	}
	return nil, errgrpc.ToGRPC(fmt.Errorf("container %s: %w", id, errdefs.ErrNotFound))
}

// find finds a process of a container.
func (s *service) find(id, exec string) (*container, *process, error) {
	c, err := s.container(id)
	if err != nil {
		return nil, nil, err
	}
	p, err := c.process(exec)
	return c, p, errgrpc.ToGRPC(err)
}

// on answers a call that does one thing to a container.
func (s *service) on(id string, do func(*container) error) (*emptypb.Empty, error) {
	c, err := s.container(id)
	if err != nil {
		return nil, err
	}
	if err := do(c); err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	return &emptypb.Empty{}, nil
}

// Create mounts a container's files and opens its streams. Its process is made and started by Start, in one go. Until
// then the shim's own number stands for it: containerd takes zero for something that need not be ended before it is
// deleted, and would wait for the end of its output.
func (s *service) Create(ctx context.Context, r *taskapi.CreateTaskRequest) (*taskapi.CreateTaskResponse, error) {
	c, err := s.create(ctx, r)
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	s.events.publish(topicCreate, &eventstypes.TaskCreate{
		ContainerID: c.id, Bundle: c.bundle, Rootfs: r.GetRootfs(), Checkpoint: r.GetCheckpoint(),
		IO: &eventstypes.TaskIO{
			Stdin: r.GetStdin(), Stdout: r.GetStdout(), Stderr: r.GetStderr(), Terminal: r.GetTerminal(),
		},
	})
	return &taskapi.CreateTaskResponse{Pid: uint32(c.number())}, nil
}

// create makes a container, one at a time of each name: what a call that is given up has mounted is unmounted then.
func (s *service) create(ctx context.Context, r *taskapi.CreateTaskRequest) (*container, error) {
	s.mu.Lock()
	taken := s.containers[r.GetID()] != nil || s.making[r.GetID()]
	if !taken {
		s.making[r.GetID()] = true
	}
	s.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("container %s: %w", r.GetID(), errdefs.ErrAlreadyExists)
	}
	c, err := newContainer(ctx, r, s.namespace)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.making, r.GetID())
	if err == nil {
		s.containers[c.id] = c
	}
	return c, err
}

// State returns the state of a process.
func (s *service) State(ctx context.Context, r *taskapi.StateRequest) (*taskapi.StateResponse, error) {
	c, p, err := s.find(r.GetID(), r.GetExecID())
	if err != nil {
		return nil, err
	}
	if err := p.awaitStart(ctx); err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	id := c.id
	if p.id != "" {
		id = p.id
	}
	out := &taskapi.StateResponse{
		ID: id, Bundle: c.bundle, Pid: uint32(c.numberOf(p)), Status: p.status(c.paused.Load()),
		Stdin: p.streams.stdin, Stdout: p.streams.stdout, Stderr: p.streams.stderr, Terminal: p.streams.terminal,
	}
	if e, over := p.over(); over {
		out.ExitStatus, out.ExitedAt = uint32(e.Status), timestamppb.New(e.Timestamp)
	}
	return out, nil
}

// Delete takes away a process that has ended, or was never started; with the first one all of the container.
func (s *service) Delete(ctx context.Context, r *taskapi.DeleteRequest) (*taskapi.DeleteResponse, error) {
	c, p, err := s.find(r.GetID(), r.GetExecID())
	if err != nil {
		return nil, err
	}
	if p.id == "" { // not while it is being started
		c.changing.Lock()
		defer c.changing.Unlock()
	}
	if st := p.status(false); st != task.Status_STOPPED && (st != task.Status_CREATED || p.beginning()) {
		return nil, errgrpc.ToGRPC(fmt.Errorf("process is running: %w", errdefs.ErrFailedPrecondition))
	}
	p.release()
	e, _ := p.over()
	out := &taskapi.DeleteResponse{
		Pid: uint32(p.number()), ExitStatus: uint32(e.Status), ExitedAt: timestamppb.New(e.Timestamp),
	}
	if p.id != "" {
		c.dropExec(p.id)
		return out, nil
	}
	if err := c.unmake(context.WithoutCancel(ctx)); err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	if err := markGone(c.bundle, out); err != nil {
		s.log.error("note that "+c.id+" is gone", err)
	}
	s.mu.Lock()
	delete(s.containers, c.id)
	s.mu.Unlock()
	s.events.publish(topicDelete, &eventstypes.TaskDelete{
		ContainerID: c.id, Pid: out.GetPid(), ExitStatus: out.GetExitStatus(), ExitedAt: out.GetExitedAt(),
	})
	return out, nil
}

// Exec notes a process that Start is to start in a container.
func (s *service) Exec(_ context.Context, r *taskapi.ExecProcessRequest) (*emptypb.Empty, error) {
	return s.on(r.GetID(), func(c *container) error {
		p := newProcess(r.GetExecID(), streams{
			stdin: r.GetStdin(), stdout: r.GetStdout(), stderr: r.GetStderr(), terminal: r.GetTerminal(),
			uid: int(c.options.GetIoUid()), gid: int(c.options.GetIoGid()),
		})
		if err := p.streams.check(); err != nil {
			return err
		}
		var what specs.Process
		if err := json.Unmarshal(r.GetSpec().GetValue(), &what); err != nil {
			return fmt.Errorf("process: %w: %w", err, errdefs.ErrInvalidArgument)
		}
		what.Terminal = r.GetTerminal()
		p.what = &what
		if err := c.addExec(p); err != nil {
			return err
		}
		s.events.publish(topicExecAdded, &eventstypes.TaskExecAdded{ContainerID: c.id, ExecID: p.id})
		return nil
	})
}

// Pids lists the processes of a container.
func (s *service) Pids(_ context.Context, r *taskapi.PidsRequest) (*taskapi.PidsResponse, error) {
	c, err := s.container(r.GetID())
	if err != nil {
		return nil, err
	}
	pids, err := c.where().processes()
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	if _, over := c.init.over(); !over && len(pids) == 0 {
		pids = []int{c.number()} // a task without processes is taken for one that was left behind
	}
	execs := map[int]string{}
	for _, p := range c.running() {
		execs[p.number()] = p.id
	}
	out := &taskapi.PidsResponse{}
	for _, pid := range pids {
		info := &task.ProcessInfo{Pid: uint32(pid)}
		if id := execs[pid]; id != "" {
			if info.Info, err = pack(&options.ProcessDetails{ExecID: id}); err != nil {
				return nil, err
			}
		}
		out.Processes = append(out.Processes, info)
	}
	return out, nil
}

// Kill sends a signal.
func (s *service) Kill(_ context.Context, r *taskapi.KillRequest) (*emptypb.Empty, error) {
	return s.on(r.GetID(), func(c *container) error {
		if r.GetExecID() == "" && unix.Signal(r.GetSignal()) == deathSignal && c.abandon() {
			e, _ := c.init.over()
			s.reportExit(c.id, c.id, e)
			return nil
		}
		return c.kill(r.GetExecID(), r.GetSignal(), r.GetAll())
	})
}

// Pause and Resume freeze and thaw all processes of a container.
func (s *service) Pause(ctx context.Context, r *taskapi.PauseRequest) (*emptypb.Empty, error) {
	return s.on(r.GetID(), func(c *container) error {
		err := c.freeze(ctx)
		if err == nil {
			s.events.publish(topicPaused, &eventstypes.TaskPaused{ContainerID: c.id})
		}
		return err
	})
}

// Resume is the opposite of Pause.
func (s *service) Resume(ctx context.Context, r *taskapi.ResumeRequest) (*emptypb.Empty, error) {
	return s.on(r.GetID(), func(c *container) error {
		err := c.thaw(ctx)
		if err == nil {
			s.events.publish(topicResumed, &eventstypes.TaskResumed{ContainerID: c.id})
		}
		return err
	})
}

// Checkpoint writes the state of a container's processes into a folder.
func (s *service) Checkpoint(ctx context.Context, r *taskapi.CheckpointTaskRequest) (*emptypb.Empty, error) {
	return s.on(r.GetID(), func(c *container) error {
		var o options.CheckpointOptions
		if err := proto.Unmarshal(r.GetOptions().GetValue(), &o); err != nil {
			return fmt.Errorf("options: %w: %w", err, errdefs.ErrInvalidArgument)
		}
		err := c.checkpoint(ctx, r.GetPath(), &o)
		if err == nil {
			s.events.publish(topicCheckpointed, &eventstypes.TaskCheckpointed{ContainerID: c.id})
		}
		return err
	})
}

// ResizePty sets the size of a process's terminal.
func (s *service) ResizePty(_ context.Context, r *taskapi.ResizePtyRequest) (*emptypb.Empty, error) {
	return s.onProcess(r.GetID(), r.GetExecID(),
		func(p *process) error { return p.resize(r.GetWidth(), r.GetHeight()) })
}

// CloseIO gives a process the end of its input.
func (s *service) CloseIO(_ context.Context, r *taskapi.CloseIORequest) (*emptypb.Empty, error) {
	return s.onProcess(r.GetID(), r.GetExecID(), (*process).closeStdin)
}

func (s *service) onProcess(id, exec string, do func(*process) error) (*emptypb.Empty, error) {
	_, p, err := s.find(id, exec)
	if err != nil {
		return nil, err
	}
	if err := do(p); err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	return &emptypb.Empty{}, nil
}

// Update changes a container's limits.
func (s *service) Update(ctx context.Context, r *taskapi.UpdateTaskRequest) (*emptypb.Empty, error) {
	return s.on(r.GetID(), func(c *container) error { return c.update(ctx, r.GetResources().GetValue()) })
}

// Wait waits for the end of a process.
func (s *service) Wait(ctx context.Context, r *taskapi.WaitRequest) (*taskapi.WaitResponse, error) {
	_, p, err := s.find(r.GetID(), r.GetExecID())
	if err != nil {
		return nil, err
	}
	e, err := p.wait(ctx)
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	return &taskapi.WaitResponse{ExitStatus: uint32(e.Status), ExitedAt: timestamppb.New(e.Timestamp)}, nil
}

// Stats reads what a container uses.
func (s *service) Stats(_ context.Context, r *taskapi.StatsRequest) (*taskapi.StatsResponse, error) {
	c, err := s.container(r.GetID())
	if err != nil {
		return nil, err
	}
	stats, err := c.stats()
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	any, err := pack(stats)
	return &taskapi.StatsResponse{Stats: any}, err
}

// Connect returns the PIDs of the shim and of a container's first process.
func (s *service) Connect(_ context.Context, r *taskapi.ConnectRequest) (*taskapi.ConnectResponse, error) {
	out := &taskapi.ConnectResponse{ShimPid: uint32(os.Getpid()), Version: "wherry.v1"}
	if c, err := s.container(r.GetID()); err == nil {
		out.TaskPid = uint32(c.number())
	}
	return out, nil
}

// Shutdown ends the shim if it has no container any more.
func (s *service) Shutdown(context.Context, *taskapi.ShutdownRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.containers) == 0 {
		s.leave()
	}
	return &emptypb.Empty{}, nil
}

var errNoCgroup = errors.New("the container has no cgroup")
