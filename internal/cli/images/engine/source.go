// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Options say where engines are, if not where they mostly are.
type Options struct {
	// Address is an engine's socket: a path or unix://path. "" looks at DOCKER_HOST or CONTAINERD_ADDRESS, then at the
	// usual places.
	Address string
	// Namespace is containerd's; "" is whichever has the image.
	Namespace string
	// Getenv is os.Getenv.
	Getenv func(string) string
}

// Source is an image of an engine.
type Source struct {
	// Engine is "docker" or "containerd".
	Engine string
	// Image is its name or, for Docker, its id, as that engine takes them.
	Image string
}

// open has the way to read each engine's images.
func open(engine string) (func(context.Context, string, Options) (io.ReadCloser, error), bool) {
	switch engine {
	case "docker":
		return openDocker, true
	case "containerd":
		return openContainerd, true
	}
	return nil, false
}

// Parse distinguishes the name of an engine's image from that of a file: it begins with the engine's name and a colon,
// as in other tools (containers-transports(5)). A file of such a name is meant with ./ before it.
func Parse(name string) (Source, bool, error) {
	engine, image, found := strings.Cut(name, ":")
	if _, known := open(engine); !found || !known {
		return Source{}, false, nil
	}
	if image = strings.TrimPrefix(image, "//"); image == "" || strings.TrimSpace(image) != image {
		return Source{}, true, fmt.Errorf("which image? For example %s:app:1", engine)
	}
	return Source{engine, image}, true, nil
}

// Open begins to read the image as an archive. Whether there is one is known when Open returns; an error later, of the
// engine or because ctx ended, comes from Read.
func (s Source) Open(ctx context.Context, o Options) (io.ReadCloser, error) {
	how, known := open(s.Engine)
	if !known {
		return nil, fmt.Errorf("images of %q cannot be read, only those of docker and containerd", s.Engine)
	}
	return how(ctx, s.Image, o)
}
