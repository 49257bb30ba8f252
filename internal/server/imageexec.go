// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	clientremote "k8s.io/client-go/tools/remotecommand"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

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
	c := runtimeapi.NewRuntimeServiceClient(e.r.Conn())
	resp, err := c.Attach(ctx, &runtimeapi.AttachRequest{ContainerId: id, Tty: s.TTY, Stdin: s.Stdin != nil, Stdout: s.Stdout != nil, Stderr: s.Stderr != nil})
	if err != nil {
		return err
	}
	u, err := url.Parse(resp.Url)
	if err != nil {
		return err
	}
	ex, err := clientremote.NewSPDYExecutor(&rest.Config{Host: u.Host}, http.MethodPost, u)
	if err != nil {
		return err
	}
	var out, errs io.Writer = s.Stdout, s.Stderr
	return ex.StreamWithContext(ctx, clientremote.StreamOptions{Stdin: s.Stdin, Stdout: out, Stderr: errs, Tty: s.TTY, TerminalSizeQueue: sizes(s)})
}

type sizeQueue struct{ s imageexec.Streams }

func sizes(s imageexec.Streams) clientremote.TerminalSizeQueue {
	if s.Resize == nil {
		return nil
	}
	return sizeQueue{s}
}
func (q sizeQueue) Next() *clientremote.TerminalSize {
	z, ok := <-q.s.Resize
	if !ok {
		return nil
	}
	return &clientremote.TerminalSize{Width: z.Width, Height: z.Height}
}
