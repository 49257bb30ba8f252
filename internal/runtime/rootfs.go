// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/moby/sys/mountinfo"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Files is what a container was made to see, as the runtime has it on the node: its root filesystem, what is bound into
// it, and its environment. It is a container's for as long as it is not removed, whether it runs or not.
type Files struct {
	// Root is where the container's root filesystem is mounted while its task is there; see RootMounted.
	Root string
	// ReadOnlyRoot is set when the container itself cannot write to its root filesystem.
	ReadOnlyRoot bool
	// Binds are in the order they were mounted in.
	Binds []Bind
	// Env is the environment of the container's first process.
	Env []string

	layers []mount.Mount // show the root filesystem when nothing else has it mounted
}

// Bind is a file or folder of the node that a container sees.
type Bind struct {
	From, At  string
	ReadOnly  bool
	Recursive bool // with what is mounted below it
	// Users opens the user namespace through which owners are seen; nil: they are seen as they are.
	Users func() (*os.File, error)
}

// Files returns the files that a container sees. The error is the runtime's when there is no such container.
func (e *engine) Files(ctx context.Context, id string) (*Files, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	c, err := e.client.ContainerService().Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("container %s: %w", id, err)
	}
	files, err := parseSpec(c.Spec.GetValue())
	if err != nil {
		return nil, fmt.Errorf("container %s: its specification cannot be read: %w", id, err)
	}
	files.Root = filepath.Join(e.tasks, id, "rootfs")
	if files.layers, err = e.client.SnapshotService(c.Snapshotter).Mounts(ctx, c.SnapshotKey); err != nil {
		return nil, fmt.Errorf("container %s: its layers: %w", id, err)
	}
	return files, nil
}

// RootMounted reports whether the container's root filesystem is mounted at Root now. containerd takes it away, with
// the folder, when it has seen the container's end.
func (f *Files) RootMounted() bool {
	mounted, err := mountinfo.Mounted(f.Root)
	return err == nil && mounted
}

// MountRoot mounts the root filesystem of a container that has ended at a folder. Read-only it may be mounted any
// number of times; writable only where nothing else has it mounted.
func (f *Files) MountRoot(at string, writable bool) error {
	layers := f.layers
	if !writable {
		layers = readOnly(layers)
	}
	if err := mount.All(layers, at); err != nil {
		return fmt.Errorf("mounting a container's layers: %w", err)
	}
	return nil
}

// HasImage reports whether the image's own files can be told apart from what the container wrote: an overlay has them
// in layers of their own.
func (f *Files) HasImage() bool { return imageOnly(f.layers) != nil }

// MountImage mounts the files of the container's image, as they were before it wrote, at a folder, read-only. They can
// be mounted any number of times, beside the container too.
func (f *Files) MountImage(at string) error {
	if err := mount.All(imageOnly(f.layers), at); err != nil {
		return fmt.Errorf("mounting the layers of a container's image: %w", err)
	}
	return nil
}

// imageOnly are a container's layers without the one that it writes to; nil if that cannot be told apart. The kernel
// makes no overlay of one layer alone: that is bound.
func imageOnly(layers []mount.Mount) []mount.Mount {
	if len(layers) != 1 || layers[0].Type != "overlay" {
		return nil
	}
	options := without(layers[0].Options, "rw", "ro", "upperdir=", "workdir=", "index=", "lowerdir=")
	for _, o := range layers[0].Options {
		lower, ok := strings.CutPrefix(o, "lowerdir=")
		switch {
		case !ok:
		case !strings.Contains(lower, ":") && len(options) == len(without(options, "uidmap=", "gidmap=")):
			return []mount.Mount{{Type: "bind", Source: lower, Options: []string{"rbind", "ro"}}}
		case !strings.Contains(lower, ":"):
			return nil // its owners are seen otherwise, which a plain bind does not do
		default:
			return []mount.Mount{{Type: "overlay", Source: layers[0].Source, Options: append(options, o, "ro")}}
		}
	}
	return nil
}

// parseSpec takes from a container's OCI specification what Files needs.
func parseSpec(text []byte) (*Files, error) {
	var spec specs.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	f := &Files{ReadOnlyRoot: spec.Root != nil && spec.Root.Readonly}
	if spec.Process != nil {
		f.Env = spec.Process.Env
	}
	for _, m := range spec.Mounts {
		recursive := slices.Contains(m.Options, "rbind")
		if !recursive && !slices.Contains(m.Options, "bind") && m.Type != "bind" {
			continue // proc, sysfs and the like are the kernel's
		}
		f.Binds = append(f.Binds, Bind{From: m.Source, At: m.Destination, Recursive: recursive,
			ReadOnly: slices.Contains(m.Options, "ro") || slices.Contains(m.Options, "rro"),
			Users:    usersOf(m.UIDMappings, m.GIDMappings)})
	}
	return f, nil
}

// usersOf returns what opens a user namespace with these mappings; nil for a mount that is seen as it is.
func usersOf(uids, gids []specs.LinuxIDMapping) func() (*os.File, error) {
	if len(uids) == 0 {
		return nil
	}
	text := func(list []specs.LinuxIDMapping) string {
		var parts []string
		for _, m := range list {
			parts = append(parts, fmt.Sprintf("%d:%d:%d", m.ContainerID, m.HostID, m.Size))
		}
		return strings.Join(parts, ",")
	}
	return func() (*os.File, error) { return mount.GetUsernsFD(text(uids), text(gids)) }
}

// readOnly turns a container's layers into ones that cannot be written to. An overlay's upper layer becomes the
// uppermost of the lower ones: the kernel lets those be shared.
func readOnly(layers []mount.Mount) []mount.Mount {
	out := slices.Clone(layers)
	for i, m := range out {
		if m.Type != "overlay" {
			out[i].Options = append(without(m.Options, "rw", "ro"), "ro")
			continue
		}
		upper := ""
		for _, o := range m.Options {
			if dir, ok := strings.CutPrefix(o, "upperdir="); ok {
				upper = dir
			}
		}
		options := without(m.Options, "rw", "upperdir=", "workdir=")
		for j, o := range options {
			if lower, ok := strings.CutPrefix(o, "lowerdir="); ok && upper != "" {
				options[j] = "lowerdir=" + upper + ":" + lower
			}
		}
		out[i].Options = options
	}
	return out
}

// without leaves out the options that are one of these, or begin with one that ends in "=".
func without(options []string, drop ...string) (out []string) {
	for _, o := range options {
		if !slices.ContainsFunc(drop,
			func(d string) bool { return o == d || strings.HasSuffix(d, "=") && strings.HasPrefix(o, d) }) {
			out = append(out, o)
		}
	}
	return out
}
