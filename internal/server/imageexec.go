// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/httpapi"
	"github.com/wherryproject/wherry/internal/node/imageexec"
	"github.com/wherryproject/wherry/internal/runtime"
)

// connectRuntime connects to the runtime that was named. One that is no containerd, or whose files cannot be reached,
// runs pods, but what debugging asks beside the CRI it does not have (IX-12).
func (s *Server) connectRuntime(ctx context.Context, log *slog.Logger) error {
	socket, err := cri.ParseEndpoint(s.opts.RuntimeEndpoint)
	if err != nil {
		return err
	}
	external := runtime.NewExternal(socket, log)
	c, err := cri.Dial(ctx, s.opts.RuntimeEndpoint, cri.WithLogger(log), cri.WithInterceptor(external.Intercept),
		cri.WithRequestTimeout(s.opts.RuntimeTimeout))
	if err != nil {
		return err
	}
	if err := writeFile(endpointFile(s.opts.DataDir), []byte(s.opts.RuntimeEndpoint+"\n"), 0o644); err != nil {
		return folderRefusal(s.opts.DataDir, err)
	}
	s.parts.cri = c
	if err := external.Connect(ctx, c.Runtime); err != nil {
		s.parts.noImageExec = fmt.Sprintf("image exec is not implemented with this node's container runtime, which does not report where containers' files are: %v", err)
		log.Info("the container runtime does not support all debugging features: no image exec, no toolbox image, no output from before attaching", "why", err)
		return nil
	}
	s.parts.external = external
	return nil
}

// debugger is what a runtime gives to debugging beside the CRI.
type debugger interface {
	httpapi.Attacher
	Files(ctx context.Context, id string) (*runtime.Files, error)
}

// debugger is the runtime that was started, or nil if it has nothing of the kind.
func (s *Server) debugger() debugger {
	switch {
	case s.parts.runtime != nil:
		return s.parts.runtime
	case s.parts.external != nil:
		return s.parts.external
	}
	return nil
}

// attacher is a runtime that keeps output for those who attach.
func (s *Server) attacher() httpapi.Attacher {
	if d := s.debugger(); d != nil {
		return d
	}
	return nil
}

// execer is a runtime that runs commands without the CRI's streams: the embedded one.
func (s *Server) execer() httpapi.Execer {
	if s.parts.runtime != nil {
		return execer{s.parts.runtime}
	}
	return nil
}

// running is a runtime that attaches to running containers without the CRI's streams: the embedded one.
func (s *Server) running() httpapi.Streams {
	if s.parts.runtime != nil {
		return s.parts.runtime
	}
	return nil
}

// forwarder is a runtime that reaches pods' ports without the CRI's streams: the embedded one.
func (s *Server) forwarder() httpapi.Forwarder {
	if s.parts.runtime != nil {
		return s.parts.runtime
	}
	return nil
}

// execer is a runtime as the node's API wants it.
type execer struct{ r *runtime.Runtime }

// Exec is part of [httpapi.Execer].
func (e execer) Exec(ctx context.Context, id string, c httpapi.Command) (int, error) {
	return e.r.Exec(ctx, id, runtime.ExecOptions{Command: c.Words, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		TTY: c.TTY, Resize: c.Resize, Ended: c.Ended})
}

// imageRuntime is what image exec can do with the runtime: nothing with one that is no containerd (IX-12).
func (s *Server) imageRuntime() imageexec.Runtime {
	if d := s.debugger(); d != nil {
		return imageRuntime{d}
	}
	return nil
}

// imageRuntime is a runtime as image exec wants it.
type imageRuntime struct{ d debugger }

// Files is part of [imageexec.Runtime].
func (r imageRuntime) Files(ctx context.Context, id string) (imageexec.Files, error) {
	f, err := r.d.Files(ctx, id)
	if err != nil {
		return imageexec.Files{}, err
	}
	out := imageexec.Files{Root: f.Root, RootMounted: f.RootMounted, MountRoot: f.MountRoot,
		ReadOnlyRoot: f.ReadOnlyRoot, Env: f.Env}
	if f.HasImage() {
		out.MountImage = f.MountImage
	}
	for _, b := range f.Binds {
		out.Binds = append(out.Binds, imageexec.Bind(b))
	}
	return out, nil
}

// Attach is part of [imageexec.Runtime].
func (r imageRuntime) Attach(ctx context.Context, id string, s imageexec.Streams) error {
	return r.d.Attach(ctx, id, runtime.AttachOptions{TTY: s.TTY, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		Resize: s.Resize})
}
