// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/wherryproject/wherry/internal/node/imageexec"
	"github.com/wherryproject/wherry/internal/runtime"
)

// imageRuntime is what image exec can do with the runtime that was started: nothing with an external one (IX-12).
func (s *Server) imageRuntime() imageexec.Runtime {
	if s.parts.runtime == nil {
		return nil
	}
	return embedded{s.parts.runtime}
}

// embedded is the embedded runtime as image exec wants it.
type embedded struct{ r *runtime.Runtime }

// Files is part of [imageexec.Runtime].
func (e embedded) Files(ctx context.Context, id string) (imageexec.Files, error) {
	f, err := e.r.Files(ctx, id)
	if err != nil {
		return imageexec.Files{}, err
	}
	out := imageexec.Files{Root: f.Root, RootMounted: f.RootMounted, MountRoot: f.MountRoot, ReadOnlyRoot: f.ReadOnlyRoot, Env: f.Env}
	for _, b := range f.Binds {
		out.Binds = append(out.Binds, imageexec.Bind(b))
	}
	return out, nil
}

// Attach is part of [imageexec.Runtime].
func (e embedded) Attach(ctx context.Context, id string, s imageexec.Streams) error {
	return e.r.Attach(ctx, id, runtime.AttachOptions{TTY: s.TTY, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Resize: s.Resize})
}
