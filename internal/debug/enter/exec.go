// SPDX-License-Identifier: Apache-2.0

package enter

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/debug/options"
	"github.com/wherryproject/wherry/internal/debug/record"
)

// Sessions makes debug containers and joins clients with them.
type Sessions interface {
	Serve(ctx context.Context, pod string, s options.Session, streams proxy.Options, r rest.Responder,
		req *http.Request) (http.Handler, error)
}

// Images runs commands from images inside pods.
type Images interface {
	Serve(ctx context.Context, pod string, run options.ImageRun, streams proxy.Options,
		r rest.Responder) (http.Handler, error)
}

// Recorder puts on record that somebody is about to enter a container by exec (IX-08).
type Recorder interface {
	Entered(ctx context.Context, pod *corev1.Pod, container string) error
}

// Exec serves pods/exec, also what it has beyond Kubernetes: exec++ (DC-03) and image exec (IX-01).
type Exec struct {
	*connect.Pods
	sessions Sessions
	images   Images
	record   Recorder
}

var _ rest.Connecter = &Exec{}

// NewExec makes the storage of pods/exec.
func NewExec(pods *connect.Pods, sessions Sessions, images Images, recorder Recorder) *Exec {
	return &Exec{pods, sessions, images, recorder}
}

// New implements rest.Storage: what admission is shown.
func (*Exec) New() runtime.Object { return &corev1.PodExecOptions{} }

// NewConnectOptions implements rest.Connecter.
func (*Exec) NewConnectOptions() (runtime.Object, bool, string) {
	return &options.Exec{}, false, ""
}

// Connect implements rest.Connecter.
func (e *Exec) Connect(ctx context.Context, name string, given runtime.Object,
	r rest.Responder) (http.Handler, error) {
	opts, ok := given.(*options.Exec)
	switch {
	case !ok:
		return nil, fmt.Errorf("invalid options object: %T", given)
	case opts.ForSession():
		return connect.UpgradeFirst(r, func(req *http.Request) (http.Handler, error) {
			return e.session(ctx, name, opts, r, req)
		}), nil
	case opts.ForImage():
		return connect.UpgradeFirst(r, func(*http.Request) (http.Handler, error) {
			return e.image(ctx, name, opts, r)
		}), nil
	case len(opts.Command) == 0:
		return nil, apierrors.NewBadRequest("you must specify at least one command for the container")
	}
	h, err := e.Command(ctx, connect.Command{Verb: "exec", Pod: name, Container: opts.Container, Argv: opts.Command,
		Streams: opts.Streams(), Chosen: func(container string) {
			record.Note(ctx, debugrun.AuditKind, debugrun.AuditExec)
			record.NoteCommand(ctx, container, opts.Command)
		}, Before: func(pod *corev1.Pod, container string) error {
			return e.record.Entered(ctx, pod, container)
		}}, r)
	if err != nil {
		return nil, err
	}
	return record.Stream(h, func(end record.End) { record.NoteEnd(ctx, end) }), nil
}

// session makes a debug container and enters it.
func (e *Exec) session(ctx context.Context, name string, o *options.Exec, r rest.Responder,
	req *http.Request) (http.Handler, error) {
	session, err := o.Session()
	if err != nil {
		return nil, err
	}
	if err := o.SomeStream(); err != nil {
		return nil, err
	}
	return e.sessions.Serve(ctx, name, session, o.Streams(), r, req)
}

// image runs a command from an image inside a pod.
func (e *Exec) image(ctx context.Context, name string, o *options.Exec, r rest.Responder) (http.Handler, error) {
	run, err := o.ImageRun()
	if err != nil {
		return nil, err
	}
	if err := o.SomeStream(); err != nil {
		return nil, err
	}
	return e.images.Serve(ctx, name, run, o.Streams(), r)
}
