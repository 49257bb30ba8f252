// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Request is what a client asks for (IX-01).
type Request struct {
	Image     string
	Policy    corev1.PullPolicy // never empty
	Command   []string          // nil: the image's own
	Container string            // whose processes the command is to see; "": nobody's
	Writable  bool              // the containers' files may be changed
	User      *debugask.User    // whom the command runs as; nil: it is decided here
	UserOf    string            // the container whose user it is then, where root may not be; "": that of Container

	Stdin, Stdout, Stderr, TTY bool
}

// Parse reads a request's query ([wire.ImageExec]). A terminal has no stderr of its own, so that is not asked for then.
// Every error is the client's.
func Parse(q url.Values) (Request, error) {
	asked, err := wire.ParseImageExec(q)
	r := Request{
		Image: asked.Image, Command: asked.Command, Container: asked.Container,
		Writable: asked.Writable, UserOf: asked.UserOf,
		Stdin: asked.Stdin, Stdout: asked.Stdout, Stderr: asked.Stderr && !asked.TTY, TTY: asked.TTY,
		Policy: corev1.PullPolicy(asked.PullPolicy),
	}
	if err != nil {
		return r, err
	}
	if r.User, err = debugask.ParseUser(asked.User); err != nil {
		return r, fmt.Errorf("user: %w", err)
	}
	switch {
	case r.Image == "":
		return r, errors.New("image: you must specify the image to run")
	case !r.Stdin && !r.Stdout && !r.Stderr:
		return r, errors.New("you must specify at least 1 of stdin, stdout, stderr")
	case len(r.Command) > 0 && r.Command[0] == "":
		return r, errors.New("command: the first word is empty")
	}
	switch r.Policy {
	case "":
		r.Policy = corev1.PullIfNotPresent
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return r, fmt.Errorf("pullPolicy: %q is not one of Always, IfNotPresent, Never", r.Policy)
	}
	if podspec.IsToolbox(r.Image) {
		r.Policy = corev1.PullNever // no registry has it
	}
	return r, nil
}

// likeWhom is the container whose user the command takes in a pod that must run without root; "" for the first that has
// one.
func (r Request) likeWhom() string {
	if r.UserOf != "" {
		return r.UserOf
	}
	return r.Container
}
