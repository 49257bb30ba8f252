// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// place is one side of a copy.
type place struct {
	namespace, pod string         // empty: this machine; a pod may be KIND/NAME, for one of an object's
	host           *target.Target // a container of this machine; nil: none
	path           string
}

// remote reports whether the place is in a container.
func (p place) remote() bool { return p.pod != "" || p.host != nil }

// name is the container's or pod's, as it is written in a command.
func (p place) name() string {
	if p.host != nil {
		return p.host.String()
	}
	return p.pod
}

// parsePlace reads PATH or [NAMESPACE/][KIND/]POD:PATH. A word that is a kind's is no namespace. What begins with a
// slash, a dot or a tilde is a path, also with a colon in it.
func parsePlace(text string) (place, error) {
	before, after, colon := strings.Cut(text, ":")
	if !colon || before == "" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") ||
		strings.HasPrefix(text, "~") {
		return place{path: text}, nil
	}
	// A pod may be called docker: its paths are absolute, or it is named with its namespace.
	if slices.Contains(target.Engines(), target.Engine(before)) && !strings.HasPrefix(after, "/") {
		return parseHost(text, before, after)
	}
	p := place{pod: before, path: after}
	if namespace, pod, ok := strings.Cut(before, "/"); ok && !(reach.IsKind(namespace) && !strings.Contains(pod, "/")) {
		p.namespace, p.pod = namespace, pod
	}
	kind, name, slash := strings.Cut(p.pod, "/")
	switch {
	case kind == "" || slash && (!reach.IsKind(kind) || name == "" || strings.Contains(name, "/")):
		return p,
			fmt.Errorf("%q: want POD:PATH or NAMESPACE/POD:PATH; in place of POD, KIND/NAME means one of an object's pods (KIND: %s)",
				text, reach.Kinds)
	case after == "":
		return p, fmt.Errorf("%q: the path in the pod is missing", text)
	}
	return p, nil
}

// parseHost reads ENGINE:NAME:PATH.
func parseHost(text, engine, rest string) (place, error) {
	name, path, ok := strings.Cut(rest, ":")
	t, _, err := target.Parse(engine + ":" + name)
	switch {
	case err != nil:
		return place{}, err
	case !ok || path == "":
		return place{},
			fmt.Errorf("%q: the path is missing: write %s:PATH for the container, or NAMESPACE/%s for a pod of that name",
				text, t, text)
	}
	return place{host: &t, path: path}, nil
}

// ofKernel reports whether a place is one that a container has from the kernel. Such files are made when they are read,
// or are devices; they are not in the filesystem that a copy works on, where something of the same name would be hidden
// below them.
func (p place) ofKernel() bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean("/"+p.path), "/"), "/")
	return p.remote() && (first == "dev" || first == "proc" || first == "sys")
}

// checkKernels refuses a copy from or to a place of the kernel's, and says what does it.
func checkKernels(from, to place) error {
	const why = "/dev, /proc and /sys in a container belong to the kernel and cannot be copied from or to"
	switch {
	case from.host != nil && from.ofKernel(), to.host != nil && to.ofKernel():
		return fmt.Errorf("%s; they can be looked at with wherry debug %s", why, cmp.Or(from.name(), to.name()))
	case from.ofKernel():
		return fmt.Errorf("%s: %s; read it with: wherry exec %s -- cat %s", from.path, why, from.pod, from.path)
	case to.ofKernel():
		return fmt.Errorf("%s: %s; write to it with: wherry exec -i %s -- sh -c 'cat > %s'", to.path, why, to.pod,
			to.path)
	}
	return nil
}
