// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	eventstypes "github.com/containerd/containerd/api/events"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/go-runc"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Start starts a container, or a process in it. What is begun goes on when the call is cancelled: its end would be
// reported to nobody.
func (s *service) Start(ctx context.Context, r *taskapi.StartRequest) (*taskapi.StartResponse, error) {
	c, p, err := s.find(r.GetID(), r.GetExecID())
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, c, p); err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	return &taskapi.StartResponse{Pid: uint32(p.number())}, nil
}

func (s *service) start(ctx context.Context, c *container, p *process) error {
	if p.id == "" {
		c.changing.Lock()
		defer c.changing.Unlock()
	}
	started := fmt.Errorf("process %s of container %s was started already: %w", p.id, c.id,
		errdefs.ErrFailedPrecondition)
	if p.status(false) != task.Status_CREATED {
		return started
	}
	tried, first := p.begin()
	if !first {
		return started
	}
	defer tried()
	switch {
	case p.id != "":
		return s.startExec(ctx, c, p)
	case c.spec.sandbox():
		return s.startSandbox(c)
	}
	return s.startContainer(context.WithoutCancel(ctx), c)
}

func (s *service) startContainer(ctx context.Context, c *container) error {
	end, err := c.start(ctx, s.children)
	if err != nil {
		return err
	}
	paths, err := readCgroup(c.settings, c.id)
	if err != nil {
		s.log.error("cgroup of "+c.id, err)
	}
	oom, err := watchOOM(paths, func() { s.reportOOM(c.id) })
	if err != nil {
		s.log.error("OOM kills in "+c.id, err)
	}
	c.mu.Lock()
	c.cgroup, c.oom = paths, oom
	c.mu.Unlock()
	s.events.publish(topicStart, &eventstypes.TaskStart{ContainerID: c.id, Pid: uint32(c.init.number())})
	go s.awaitEnd(c, end)
	return nil
}

func (s *service) startSandbox(c *container) error {
	pid, end, err := holder{spec: c.spec, bundle: c.bundle, front: s.front}.start(s.children)
	if err != nil {
		c.init.never(failedStatus)
		return err
	}
	if err := writePid(c.bundle, pid); err != nil {
		s.log.error("number of the pod's process", err)
	}
	paths := c.spec.ownCgroup(c.settings.SystemdCgroup)
	if err := paths.take(pid); err != nil {
		s.log.error("cgroup of the pod's process", err)
	}
	c.mu.Lock()
	c.cgroup = paths
	c.mu.Unlock()
	c.init.started(pid)
	s.events.publish(topicStart, &eventstypes.TaskStart{ContainerID: c.id, Pid: uint32(pid)})
	go s.awaitEnd(c, end)
	return nil
}

func (s *service) startExec(ctx context.Context, c *container, p *process) error {
	end, err := c.exec(ctx, p, *p.what, s.children)
	if err != nil {
		return err
	}
	s.events.publish(topicExecStarted, &eventstypes.TaskExecStarted{
		ContainerID: c.id, ExecID: p.id, Pid: uint32(p.number()),
	})
	go func() {
		e := <-end
		p.finish(e)
		s.reportExit(c.id, p.id, e)
	}()
	return nil
}

// awaitEnd sees a container's end through. Nothing of it runs any more when its end is reported, and an OOM kill has
// been reported before: whoever learns of the end knows why.
func (s *service) awaitEnd(c *container, end <-chan runc.Exit) {
	e := <-end
	if err := c.end(e); err != nil {
		s.log.error("end of "+c.id, err)
	}
	c.oom.stop()
	if sent := c.lastOOM(); sent != nil {
		select {
		case <-sent:
		case <-time.After(eventOnExit):
		}
	}
	c.init.finish(e)
	s.reportExit(c.id, c.id, e)
	s.leaveIfAsked()
}

func (s *service) reportExit(id, process string, e runc.Exit) {
	s.events.publish(topicExit, &eventstypes.TaskExit{
		ContainerID: id, ID: process, Pid: uint32(e.Pid), ExitStatus: uint32(e.Status),
		ExitedAt: timestamppb.New(e.Timestamp),
	})
}

// reportOOM sends the event of an OOM kill, and notes when containerd has it.
func (s *service) reportOOM(id string) {
	sent := s.events.publish(topicOOM, &eventstypes.TaskOOM{ContainerID: id})
	if c, err := s.container(id); err == nil {
		c.mu.Lock()
		c.oomSent = sent
		c.mu.Unlock()
	}
}

func writePid(bundle string, pid int) error {
	return writeFile(filepath.Join(bundle, pidFile), []byte(strconv.Itoa(pid)))
}
