// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"time"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/go-runc"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
)

const (
	listenerFD = 3                // where the front program leaves the socket
	leaveTime  = 5 * time.Second  // for what is being answered when the shim ends
	restAfter  = 10 * time.Second // of quiet: memory is given back
)

// Options say what a shim serves.
type Options struct {
	Namespace string // containerd's
	ID        string // of the pod's sandbox, whose name the shim has
	Events    string // the path of containerd's socket for events
	Front     string // the program that holds namespaces
}

// Serve serves one pod's tasks on the socket that was inherited, until containerd says that it is done. The working
// folder is the bundle of the sandbox.
func Serve(o Options) error {
	debug.SetGCPercent(40)
	log := openLog(o.ID)
	children := newChildren()
	runc.Monitor = children
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of what is left: %w", err)
	}
	signals := make(chan os.Signal, 32)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGINT, unix.SIGPIPE)
	file := os.NewFile(listenerFD, "socket")
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	file.Close()
	server, err := ttrpc.NewServer(ttrpc.WithServerHandshaker(ttrpc.UnixSocketRequireSameUser()))
	if err != nil {
		return err
	}
	var once sync.Once
	left := make(chan struct{})
	s := &service{
		namespace: o.Namespace, front: o.Front, log: log, children: children,
		events:     newEvents(o.Events, o.Namespace, log),
		leave:      func() { once.Do(func() { close(left) }) },
		containers: map[string]*container{}, making: map[string]bool{},
	}
	taskapi.RegisterTTRPCTaskService(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), listener) }()
	err = s.run(signals, left, served)
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	_ = server.Shutdown(ctx)
	if path := listener.Addr().String(); path != "" && path[0] == '/' {
		_ = os.Remove(path)
	}
	s.events.close()
	return err
}

// run collects ends of processes until the shim is to leave. A signal to end is obeyed when nothing runs in the pod any
// more, as on a machine that is being switched off: pods outlive what it is meant for otherwise.
func (s *service) run(signals <-chan os.Signal, left <-chan struct{}, served <-chan error) error {
	rest := time.NewTimer(restAfter)
	defer rest.Stop()
	for {
		select {
		case sig := <-signals:
			switch sig {
			case unix.SIGCHLD:
				s.children.collect()
				rest.Reset(restAfter)
			case unix.SIGTERM, unix.SIGINT:
				s.askedToLeave()
			}
		case <-rest.C:
			debug.FreeOSMemory()
		case <-left:
			return nil
		case err := <-served:
			if errors.Is(err, ttrpc.ErrServerClosed) {
				return nil
			}
			return fmt.Errorf("serve: %w", err)
		}
	}
}

// askedToLeave notes that the shim was asked to end by a signal.
func (s *service) askedToLeave() {
	s.mu.Lock()
	s.asked = true
	s.mu.Unlock()
	s.leaveIfAsked()
}

// leaveIfAsked ends the shim if a signal has asked for it and no container runs. To be called at each end of one.
func (s *service) leaveIfAsked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		return
	}
	for _, c := range s.containers {
		if c.init.number() != 0 && !c.spec.sandbox() {
			if _, over := c.init.over(); !over {
				return
			}
		}
	}
	s.leave()
}
