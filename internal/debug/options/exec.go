// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/util/proxy"
)

// Exec are the query parameters of pods/exec: those of Kubernetes, and those of a debug session (package
// debugask has their names). The fields are flat since the API's documentation of parameters is made of them.
type Exec struct {
	metav1.TypeMeta `json:",inline"`

	Stdin     bool     `json:"stdin,omitempty"`
	Stdout    bool     `json:"stdout,omitempty"`
	Stderr    bool     `json:"stderr,omitempty"`
	TTY       bool     `json:"tty,omitempty"`
	Container string   `json:"container,omitempty"`
	Command   []string `json:"command"`

	DebugName       string `json:"ephemeralContainerName,omitempty"`
	DebugImage      string `json:"ephemeralContainerImage,omitempty"`
	DebugTarget     string `json:"ephemeralContainerTarget,omitempty"`
	DebugProfile    string `json:"ephemeralContainerProfile,omitempty"`
	DebugTTL        string `json:"ephemeralContainerTTL,omitempty"`
	DebugPullPolicy string `json:"ephemeralContainerPullPolicy,omitempty"`
	UnlessDead      bool   `json:"ephemeralContainerUnlessDead,omitempty"`
	DebugUser       string `json:"ephemeralContainerUser,omitempty"`
	DebugRequest    string `json:"ephemeralContainerRequest,omitempty"`

	Image      string `json:"image,omitempty"`
	Writable   bool   `json:"writable,omitempty"`
	PullPolicy string `json:"pullPolicy,omitempty"`
	User       string `json:"user,omitempty"`
	UserOf     string `json:"userOf,omitempty"`

	// Given are the names of the parameters of a debug session that the request has.
	Given []string
}

// DeepCopyObject implements runtime.Object.
func (o *Exec) DeepCopyObject() runtime.Object {
	out := *o
	out.Command, out.Given = slices.Clone(o.Command), slices.Clone(o.Given)
	return &out
}

// SwaggerDoc describes the parameters.
func (*Exec) SwaggerDoc() map[string]string {
	doc := map[string]string{
		"ephemeralContainerName":       "Name of the ephemeral container to create and enter. Requires ephemeralContainerImage.",
		"ephemeralContainerImage":      "Image of the ephemeral container to create and enter. Requires ephemeralContainerName.",
		"ephemeralContainerTarget":     "Name of the container whose processes the ephemeral container sees.",
		"ephemeralContainerProfile":    "What the ephemeral container may do: general (default), baseline, restricted, netadmin, sysadmin or legacy.",
		"ephemeralContainerTTL":        "Duration after which the ephemeral container is stopped.",
		"ephemeralContainerPullPolicy": "When the ephemeral container's image is pulled: Always, IfNotPresent or Never.",
		"ephemeralContainerUnlessDead": "Fail with a cause of type Dead if the pod, the target or everything that ran in it has ended.",
		"ephemeralContainerRequest":    "An identifier chosen by the client, at most 64 bytes, that the pod keeps for the ephemeral container created by this request.",
		"image":                        "Image in which the command is run, inside the pod, with the containers' files under /c.",
		"writable":                     "Whether the command may write to the containers' files. Defaults to false.",
		"ephemeralContainerUser":       "User, and after a colon the group, that the ephemeral container runs as, by number.",
		"user":                         "User, and after a colon the group, that the command runs as, by number. Defaults to root where the pod allows it.",
		"userOf":                       "Container whose user the command runs as where the pod allows no root and no user is given.",
		"pullPolicy":                   "When the image is pulled: Always, IfNotPresent or Never.",
	}
	for name, text := range (corev1.PodExecOptions{}).SwaggerDoc() {
		doc[name] = text
	}
	return doc
}

// Streams are those the client asks for.
func (o *Exec) Streams() proxy.Options {
	return proxy.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY}
}

// SomeStream refuses a request that could neither say nor hear anything.
func (o *Exec) SomeStream() error {
	if !o.Stdin && !o.Stdout && !o.Stderr {
		return apierrors.NewBadRequest("you must specify at least 1 of stdin, stdout, stderr")
	}
	return nil
}
