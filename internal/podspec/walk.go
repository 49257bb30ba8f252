// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kind is what part a container plays in its Pod.
type Kind int

const (
	// Main is a container of spec.containers.
	Main Kind = iota
	// Init is a container of spec.initContainers that must end before the next one starts.
	Init
	// Sidecar is a container of spec.initContainers with restartPolicy Always.
	Sidecar
	// Ephemeral is a container of spec.ephemeralContainers.
	Ephemeral
)

// String returns main, init, sidecar or ephemeral.
func (k Kind) String() string {
	switch k {
	case Init:
		return "init"
	case Sidecar:
		return "sidecar"
	case Ephemeral:
		return "ephemeral"
	default:
		return "main"
	}
}

// Label returns the value of the runtime label io.kubernetes.container.type (DC-10).
func (k Kind) Label() string {
	switch k {
	case Init:
		return "INIT"
	case Sidecar:
		return "SIDECAR"
	case Ephemeral:
		return "EPHEMERAL"
	default:
		return "REGULAR"
	}
}

// MarshalText implements encoding.TextMarshaler, with the words of String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. A word that it does not know, as of a later version, is Main.
func (k *Kind) UnmarshalText(text []byte) error {
	*k = Main
	for _, known := range []Kind{Init, Sidecar, Ephemeral} {
		if known.String() == string(text) {
			*k = known
		}
	}
	return nil
}

// List is the field of a Pod's spec that holds the containers of a kind.
func (k Kind) List() string {
	switch k {
	case Init, Sidecar:
		return "initContainers"
	case Ephemeral:
		return "ephemeralContainers"
	default:
		return "containers"
	}
}

// ContainerRef is one container of a Pod and where it stands.
type ContainerRef struct {
	Kind  Kind
	Index int // in its list
	// Container points into the Pod. An ephemeral container is seen as an ordinary one: the fields are
	// the same but for Target.
	Container *corev1.Container
	// Target is the targetContainerName of an ephemeral container, else "".
	Target string

	spec *field.Path // of the spec that it stands in; nil: spec
}

// Path is where the container stands, e.g. spec.initContainers[1].
func (r ContainerRef) Path() *field.Path {
	spec := r.spec
	if spec == nil {
		spec = field.NewPath("spec")
	}
	return spec.Child(r.Kind.List()).Index(r.Index)
}

// Containers walks the containers of a Pod: inits and sidecars in order, mains, then ephemeral ones.
func Containers(spec *corev1.PodSpec) iter.Seq[ContainerRef] {
	return containersBelow(spec, nil)
}

// OwnContainers walks the containers that a Pod is made of: all of them without the ephemeral ones, which come and go.
func OwnContainers(spec *corev1.PodSpec) iter.Seq[ContainerRef] {
	return func(yield func(ContainerRef) bool) {
		for ref := range Containers(spec) {
			if ref.Kind == Ephemeral || !yield(ref) {
				return
			}
		}
	}
}

func containersBelow(spec *corev1.PodSpec, path *field.Path) iter.Seq[ContainerRef] {
	return func(yield func(ContainerRef) bool) {
		for i := range spec.InitContainers {
			c := &spec.InitContainers[i]
			kind := Init
			if IsSidecar(c) {
				kind = Sidecar
			}
			if !yield(ContainerRef{Kind: kind, Index: i, Container: c, spec: path}) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(ContainerRef{Kind: Main, Index: i, Container: &spec.Containers[i], spec: path}) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			e := &spec.EphemeralContainers[i]
			if !yield(ContainerRef{Kind: Ephemeral, Index: i, Container: AsContainer(e), Target: e.TargetContainerName,
				spec: path}) {
				return
			}
		}
	}
}

// FindEphemeral returns the ephemeral container of that name as it stands in the Pod, nil if there is none.
func FindEphemeral(pod *corev1.Pod, name string) *corev1.EphemeralContainer {
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return &pod.Spec.EphemeralContainers[i]
		}
	}
	return nil
}

// FindContainer returns the container of that name, of whatever kind. Names are unique in a Pod (EC-06).
func FindContainer(spec *corev1.PodSpec, name string) (ContainerRef, bool) {
	for ref := range Containers(spec) {
		if ref.Container.Name == name {
			return ref, true
		}
	}
	return ContainerRef{}, false
}

// IsSidecar reports whether an entry of spec.initContainers is a sidecar, i.e. has restartPolicy Always
// (KEP-753). It means nothing for containers of the other lists.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// AsContainer shows an ephemeral container as an ordinary one. It shares memory with its argument.
func AsContainer(e *corev1.EphemeralContainer) *corev1.Container {
	return (*corev1.Container)(&e.EphemeralContainerCommon)
}

// EndedBefore names the init containers that have ended when the named container starts: those before it that are no
// sidecars.
func EndedBefore(spec *corev1.PodSpec, container string) (out []string) {
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if c.Name == container {
			break
		}
		if !IsSidecar(c) {
			out = append(out, c.Name)
		}
	}
	return out
}
