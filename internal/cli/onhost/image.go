// SPDX-License-Identifier: Apache-2.0

package onhost

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/images/engine"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/image"
	"github.com/wherryproject/wherry/internal/hostdebug/session"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// image is an image to debug with: of the target's own engine, if that has it, else of its registry.
func (f *Flags) image(t cmdline.Terminal, c *engines.Container, ref string, quiet bool) session.Image {
	i := &image.Image{Ref: ref, Keys: authn.DefaultKeychain, Whose: "credentials are those of docker login"}
	if !quiet {
		i.Note = func(format string, args ...any) { fmt.Fprintf(t.Err, format+"\n", args...) }
	}
	switch {
	case c.OpenImage != nil:
		i.Own = func(ctx context.Context) (io.ReadCloser, error) { return c.OpenImage(ctx, ref) }
	case c.Target.Engine == target.Docker || c.Target.Engine == target.Containerd:
		i.Own = func(ctx context.Context) (io.ReadCloser, error) {
			return engine.Source{Engine: string(c.Target.Engine), Image: ref}.Open(ctx,
				engine.Options{Address: f.Address,
					Getenv: os.Getenv, Namespace: c.Target.Namespace})
		}
	}
	return i
}
