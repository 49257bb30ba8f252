// SPDX-License-Identifier: Apache-2.0

package byrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"

	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// connectWithin bounds how long a containerd may take to answer at all.
const connectWithin = 10 * time.Second

// Containerd is a containerd behind a socket.
type Containerd struct {
	socket string
	client *containerd.Client
}

// NewContainerd connects to the containerd that the options name. [Containerd.Close] closes it.
func NewContainerd(ctx context.Context, o engines.Options) (*Containerd, error) {
	socket, err := enginesocket.ContainerdPlace().Find(ctx, o.Address, o.Getenv)
	if err != nil { // says plainly what the client would say late
		return nil, err
	}
	client, err := containerd.New(socket, containerd.WithTimeout(connectWithin))
	if err != nil {
		return nil, fmt.Errorf("containerd (%s): %w", socket, err)
	}
	return &Containerd{socket, client}, nil
}

// Close closes the connection.
func (c *Containerd) Close() error { return c.client.Close() }

// place is a container and the namespace of containerd that it is in.
type place struct {
	namespace string
	info      containers.Container
}

// Find implements engines.Engine.
func (c *Containerd) Find(ctx context.Context, t target.Target) (*engines.Container, error) {
	all := []string{t.Namespace}
	if t.Namespace == "" {
		var err error
		if all, err = c.client.NamespaceService().List(ctx); err != nil {
			return nil, fmt.Errorf("socket %s: %w", c.socket, err)
		}
	}
	var found []place
	for _, ns := range all {
		list, err := c.client.ContainerService().List(namespaces.WithNamespace(ctx, ns))
		if err != nil {
			return nil, fmt.Errorf("socket %s, namespace %s: %w", c.socket, ns, err)
		}
		for _, info := range list {
			if strings.HasPrefix(info.ID, t.Name) {
				found = append(found, place{ns, info})
			}
		}
	}
	one, err := choose(found, t.Name, all)
	if err != nil {
		return nil, err
	}
	return c.describe(ctx, one)
}

// choose decides which container is meant: the one with exactly this ID, or else the only one whose ID begins with it.
func choose(found []place, name string, looked []string) (place, error) {
	var exact []place
	for _, p := range found {
		if p.info.ID == name {
			exact = append(exact, p)
		}
	}
	if len(exact) > 0 {
		found = exact
	}
	switch len(found) {
	case 0:
		return place{}, fmt.Errorf("there is no such container (namespaces: %s)", strings.Join(looked, ", "))
	case 1:
		return found[0], nil
	}
	var which []string
	for _, p := range found {
		which = append(which, fmt.Sprintf("containerd:%s/%s", p.namespace, p.info.ID))
	}
	return place{}, fmt.Errorf("several containers are meant: choose one of %s", strings.Join(which, ", "))
}

// describe is what containerd knows of a container.
func (c *Containerd) describe(ctx context.Context, p place) (*engines.Container, error) {
	ctx = namespaces.WithNamespace(ctx, p.namespace)
	d := &engines.Container{Target: target.Target{Engine: target.Containerd, Namespace: p.namespace, Name: p.info.ID},
		ID: p.info.ID, Name: nameOf(p.info), Image: p.info.Image, State: engines.Exited, Created: p.info.CreatedAt}
	if p.info.Spec != nil {
		if err := specInto(d, p.info.Spec.GetValue()); err != nil {
			return nil, err
		}
	}
	got, err := c.client.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: p.info.ID})
	switch {
	case errdefs.IsNotFound(err):
		// It has ended, or never ran: containerd does not report which.
	case err != nil:
		return nil, fmt.Errorf("its task: %w", err)
	default:
		taskInto(d, got.GetProcess())
	}
	if !d.Alive() && p.info.SnapshotKey != "" {
		if d.Layers, err = c.layers(ctx, p.info.Snapshotter, p.info.SnapshotKey); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// nameOf is a container's name: in Kubernetes, in nerdctl, or its ID.
func nameOf(info containers.Container) string {
	for _, label := range []string{"io.kubernetes.container.name", "nerdctl/name"} {
		if name := info.Labels[label]; name != "" {
			return name
		}
	}
	if info.Labels["io.cri-containerd.kind"] == "sandbox" {
		return "sandbox"
	}
	return info.ID
}

// taskInto adds the state of a task.
func taskInto(d *engines.Container, p *task.Process) {
	switch p.GetStatus() {
	case task.Status_RUNNING:
		d.State, d.PID = engines.Running, int(p.GetPid())
	case task.Status_PAUSED, task.Status_PAUSING:
		d.State, d.PID = engines.Paused, int(p.GetPid())
	case task.Status_STOPPED:
		d.State, d.ExitCode = engines.Exited, int(p.GetExitStatus())
		if at := p.GetExitedAt(); at != nil {
			d.Finished = at.AsTime()
		}
	}
}

// layers are those of a snapshot, as far as they can be shown without changing it.
func (c *Containerd) layers(ctx context.Context, snapshotter, key string) (*engines.Layers, error) {
	mounts, err := c.client.SnapshotService(snapshotter).Mounts(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("its layers: %w", err)
	}
	return layersOf(mounts)
}

// layersOf makes layers of what a snapshot would be mounted with.
func layersOf(mounts []mount.Mount) (*engines.Layers, error) {
	if len(mounts) != 1 {
		return nil, fmt.Errorf("its layers are %d mounts, which cannot be shown", len(mounts))
	}
	m := mounts[0]
	switch m.Type {
	case "bind":
		return &engines.Layers{Overlay: []string{m.Source}}, nil
	case "overlay":
		l := &engines.Layers{}
		var lower []string
		for _, o := range m.Options {
			key, value, _ := strings.Cut(o, "=")
			switch key {
			case "upperdir":
				l.Overlay = append(l.Overlay, value)
			case "lowerdir":
				lower = strings.Split(value, ":")
			case "userxattr", "metacopy", "redirect_dir", "index":
				l.Options = append(l.Options, o)
			}
		}
		l.Overlay = append(l.Overlay, lower...)
		return l, nil
	}
	return nil, fmt.Errorf("its layers are of type %s, which cannot be shown", m.Type)
}

// List implements engines.Engine.
func (c *Containerd) List(ctx context.Context) ([]*engines.Container, error) {
	spaces, err := c.client.NamespaceService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", c.socket, err)
	}
	var all []*engines.Container
	for _, ns := range spaces {
		ctx := namespaces.WithNamespace(ctx, ns)
		list, err := c.client.ContainerService().List(ctx)
		if err != nil {
			return nil, err
		}
		running, err := c.client.TaskService().List(ctx, &tasks.ListTasksRequest{})
		if err != nil {
			return nil, err
		}
		byID := map[string]*task.Process{}
		for _, p := range running.GetTasks() {
			byID[p.GetID()] = p
		}
		for _, info := range list {
			d := &engines.Container{Target: target.Target{Engine: target.Containerd, Namespace: ns, Name: info.ID},
				ID: info.ID, Name: nameOf(info), Image: info.Image, State: engines.Exited, Created: info.CreatedAt}
			if p := byID[info.ID]; p != nil {
				taskInto(d, p)
			}
			all = append(all, d)
		}
	}
	return all, nil
}

// Snapshots finds the layers that another engine, Docker, keeps in containerd under its container's ID.
func Snapshots(o engines.Options) func(ctx context.Context, namespace, id string) (*engines.Layers, error) {
	return func(ctx context.Context, namespace, id string) (*engines.Layers, error) {
		c, err := NewContainerd(ctx, o)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		ctx = namespaces.WithNamespace(ctx, namespace)
		var errs []error
		for _, snapshotter := range []string{"overlayfs", "native", "btrfs", "zfs"} {
			l, err := c.layers(ctx, snapshotter, id)
			if err == nil {
				return l, nil
			}
			errs = append(errs, err)
		}
		return nil, errors.Join(errs...)
	}
}
