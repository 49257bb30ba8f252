// SPDX-License-Identifier: Apache-2.0

package options

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// GroupVersion is that of the API.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: wire.Group, Version: wire.Version}
}

// Streams are those that a client asks for, as pods/exec has them.
type Streams struct {
	Stdin  bool   `json:"stdin,omitempty"`
	Stdout bool   `json:"stdout,omitempty"`
	Stderr bool   `json:"stderr,omitempty"`
	TTY    bool   `json:"tty,omitempty"`
	Term   string `json:"term,omitempty"` // what the client's terminal is, as TERM says it
}

// Bounds are those of a session, as the client wrote them; empty: the API's own.
type Bounds struct {
	TTL    string `json:"ttl,omitempty"`
	Memory string `json:"memory,omitempty"`
	CPUs   string `json:"cpus,omitempty"`
}

// Shell asks for a debugger in the namespaces of one container.
type Shell struct {
	metav1.TypeMeta `json:",inline"`
	Streams         `json:",inline"`
	Bounds          `json:",inline"`

	Container string   `json:"container,omitempty"`
	Command   []string `json:"command,omitempty"`
	Image     string   `json:"image,omitempty"` // empty: the toolbox
	Profile   string   `json:"profile,omitempty"`
	User      string   `json:"user,omitempty"`
	Writable  bool     `json:"writable,omitempty"`
}

// Exec asks for a command from an image, with the files of the pod's containers.
type Exec struct {
	metav1.TypeMeta `json:",inline"`
	Streams         `json:",inline"`
	Bounds          `json:",inline"`

	Container string   `json:"container,omitempty"` // whose processes it sees; empty: nobody's
	Command   []string `json:"command,omitempty"`
	Image     string   `json:"image"`
	User      string   `json:"user,omitempty"`
	Writable  bool     `json:"writable,omitempty"`
}

// Files asks for files of a container, or brings some.
type Files struct {
	metav1.TypeMeta `json:",inline"`
	Bounds          `json:",inline"`

	Container string `json:"container,omitempty"`
	Op        string `json:"op,omitempty"` // wire.OpPack, the default, or wire.OpUnpack
	Path      string `json:"path"`
	Total     bool   `json:"total,omitempty"`
	Follow    bool   `json:"follow,omitempty"`
	After     string `json:"after,omitempty"`
	Keep      string `json:"keep,omitempty"`
	User      string `json:"user,omitempty"`
}

// Evidence asks for what a node knows of a pod's containers.
type Evidence struct {
	metav1.TypeMeta `json:",inline"`
}

// Sessions asks for the debuggers of a pod, or for their end.
type Sessions struct {
	metav1.TypeMeta `json:",inline"`

	Session string `json:"session,omitempty"` // the one to end; empty: all
}

// Pod is what the subresources are of. It is never shown: pods are read from kube-apiserver.
type Pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}
