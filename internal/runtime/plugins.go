// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
	"github.com/pelletier/go-toml/v2"

	// The plug-ins themselves register when imported. Only what is in wanted runs; what is not imported here (zfs,
	// btrfs, devmapper, erofs, NRI, tracing, containerd's own servers) is not linked either.
	_ "github.com/containerd/containerd/v2/core/runtime/v2"
	_ "github.com/containerd/containerd/v2/plugins/content/local/plugin"
	_ "github.com/containerd/containerd/v2/plugins/cri"
	_ "github.com/containerd/containerd/v2/plugins/cri/images"
	_ "github.com/containerd/containerd/v2/plugins/cri/runtime"
	_ "github.com/containerd/containerd/v2/plugins/diff/walking/plugin"
	_ "github.com/containerd/containerd/v2/plugins/events"
	_ "github.com/containerd/containerd/v2/plugins/gc"
	_ "github.com/containerd/containerd/v2/plugins/leases"
	_ "github.com/containerd/containerd/v2/plugins/metadata"
	_ "github.com/containerd/containerd/v2/plugins/mount"
	_ "github.com/containerd/containerd/v2/plugins/sandbox"
	_ "github.com/containerd/containerd/v2/plugins/services/containers"
	_ "github.com/containerd/containerd/v2/plugins/services/content"
	_ "github.com/containerd/containerd/v2/plugins/services/diff"
	_ "github.com/containerd/containerd/v2/plugins/services/events"
	_ "github.com/containerd/containerd/v2/plugins/services/images"
	_ "github.com/containerd/containerd/v2/plugins/services/introspection"
	_ "github.com/containerd/containerd/v2/plugins/services/namespaces"
	_ "github.com/containerd/containerd/v2/plugins/services/sandbox"
	_ "github.com/containerd/containerd/v2/plugins/services/snapshots"
	_ "github.com/containerd/containerd/v2/plugins/services/tasks"
	_ "github.com/containerd/containerd/v2/plugins/services/warning"
	_ "github.com/containerd/containerd/v2/plugins/snapshots/native/plugin"
	_ "github.com/containerd/containerd/v2/plugins/snapshots/overlay/plugin"
	_ "github.com/containerd/containerd/v2/plugins/transfer"

	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// URIs of the plug-ins this package talks to.
const (
	criPlugin    = "io.containerd.grpc.v1.cri"
	eventsPlugin = "io.containerd.grpc.v1.events"
	imagesPlugin = "io.containerd.cri.v1.images"
)

// wanted lists the plug-ins that run, besides the snapshotter. Order is found by containerd from what requires what;
// the CRI comes last, because it needs all others.
var wanted = []string{
	"io.containerd.content.v1.content",
	"io.containerd.differ.v1.walking",
	"io.containerd.event.v1.exchange",
	"io.containerd.gc.v1.scheduler",
	"io.containerd.lease.v1.manager",
	"io.containerd.metadata.v1.bolt",
	"io.containerd.mount-manager.v1.bolt",
	"io.containerd.runtime.v2.task",
	"io.containerd.shim.v1.manager",
	"io.containerd.sandbox.controller.v1.shim",
	"io.containerd.sandbox.store.v1.local",
	"io.containerd.service.v1.containers-service",
	"io.containerd.service.v1.content-service",
	"io.containerd.service.v1.diff-service",
	"io.containerd.service.v1.images-service",
	"io.containerd.service.v1.introspection-service",
	"io.containerd.service.v1.namespaces-service",
	"io.containerd.service.v1.snapshots-service",
	tasksPlugin,
	"io.containerd.transfer.v1.local",
	"io.containerd.warning.v1.deprecations",
	"io.containerd.cri.v1.runtime",
	"io.containerd.podsandbox.controller.v1.podsandbox",
	imagesPlugin,
	eventsPlugin,
	criPlugin,
}

// daemon is the set of containerd's plug-ins, in the order they were started.
type daemon struct {
	set   *plugin.Set
	ready []<-chan struct{} // closed by the plug-ins that get ready in the background
}

// loader starts plug-ins.
type loader struct {
	dirs        dirs
	log         *slog.Logger
	snapshotter string
	socket      string // of a snapshotter that is a program of its own
	settings    settings
	daemon      *daemon
	taps        *tap.Taps
}

// load starts every wanted plug-in, except the one called but (all if that is empty). Those that run already are not
// started again.
func (l *loader) load(ctx context.Context, but string) error {
	names := slices.Clone(wanted)
	if own := plugins.SnapshotPlugin.String() + "." + l.snapshotter; l.socket == "" {
		names = append(names, own)
	} else if l.daemon.set.Get(plugins.SnapshotPlugin, l.snapshotter) == nil {
		root := filepath.Join(l.dirs.root, own)
		if err := l.start(ctx, proxyPlugin(l.snapshotter, l.socket, root)); err != nil {
			return fmt.Errorf("snapshotter %s: %w", l.snapshotter, err)
		}
	}
	found := 0
	graph := registry.Graph(func(r *plugin.Registration) bool { return !slices.Contains(names, r.URI()) })
	for _, p := range graph {
		found++
		uri := p.URI()
		if uri == but {
			continue
		}
		if l.daemon.set.Get(p.Type, p.ID) != nil {
			continue
		}
		if err := l.start(ctx, p); err != nil {
			return fmt.Errorf("containerd plug-in %s: %w", uri, err)
		}
	}
	if found != len(names) {
		return fmt.Errorf("containerd has only %d of the %d plug-ins that the runtime needs", found, len(names))
	}
	return nil
}

func (l *loader) start(ctx context.Context, p plugin.Registration) error {
	uri := p.URI()
	ic := plugin.NewContext(ctx, l.daemon.set, map[string]string{
		plugins.PropertyRootDir:      filepath.Join(l.dirs.root, uri),
		plugins.PropertyStateDir:     filepath.Join(l.dirs.run, uri),
		plugins.PropertyGRPCAddress:  l.dirs.shimAddress(),
		plugins.PropertyTTRPCAddress: l.dirs.eventSocket(),
	})
	ic.RegisterReadiness = func() func() {
		ready := make(chan struct{})
		l.daemon.ready = append(l.daemon.ready, ready)
		return func() { close(ready) }
	}
	if p.Config != nil {
		if err := decode(l.settings[uri], p.Config); err != nil {
			return err
		}
		ic.Config = p.Config
	}
	if uri == tasksPlugin {
		service := p.InitFn
		p.InitFn = func(ic *plugin.InitContext) (any, error) {
			inner, err := service(ic)
			if err != nil {
				return nil, err
			}
			noted, err := wrapTasks(inner, l.dirs, l.log)
			if err != nil {
				return nil, err
			}
			return &tappedTasks{noted, l.daemon, l.taps}, nil
		}
	}
	result := p.Init(ic)
	if err := l.daemon.set.Add(result); err != nil {
		return err
	}
	_, err := result.Instance()
	return err
}

// decode puts settings into a plug-in's configuration. Most of those types are internal to containerd, so the way in
// is TOML, their file format. A setting the plug-in does not know is an error: it would be silently lost.
func decode(values map[string]any, into any) error {
	if len(values) == 0 {
		return nil
	}
	text, err := toml.Marshal(values)
	if err != nil {
		return err
	}
	return toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(into)
}

// instance returns a running plug-in as a T.
func instance[T any](d *daemon, t plugin.Type, id string) (T, error) {
	var zero T
	p := d.set.Get(t, id)
	if p == nil {
		return zero, fmt.Errorf("containerd plug-in %s.%s is not running", t, id)
	}
	i, err := p.Instance()
	if err != nil {
		return zero, err
	}
	v, ok := i.(T)
	if !ok {
		return zero, fmt.Errorf("containerd plug-in %s.%s is a %T, which cannot be used here", t, id, i)
	}
	return v, nil
}

// client makes a containerd client that calls the plug-ins directly.
func (d *daemon) client(ctx context.Context) (*containerd.Client, error) {
	return containerd.New("", containerd.WithDefaultNamespace(Namespace),
		containerd.WithInMemoryServices(plugin.NewContext(ctx, d.set, nil)))
}

// stop closes the plug-ins, the newest first. One that hangs is left behind after a while: the caller is about to end.
func (d *daemon) stop(limit time.Duration) error {
	done := make(chan error, 1)
	go func() {
		var errs []error
		for _, p := range slices.Backward(d.set.GetAll()) {
			i, err := p.Instance()
			if err != nil {
				continue
			}
			if c, ok := i.(io.Closer); ok {
				if err := c.Close(); err != nil {
					errs = append(errs, fmt.Errorf("containerd plug-in %s: %w", p.Registration.URI(), err))
				}
			}
		}
		done <- errors.Join(errs...)
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("containerd did not stop within %s", limit)
	}
}
