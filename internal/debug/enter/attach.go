// SPDX-License-Identifier: Apache-2.0

package enter

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/debug/record"
)

// Attach serves pods/attach.
type Attach struct{ *connect.Pods }

var _ rest.Connecter = &Attach{}

// NewAttach makes the storage of pods/attach.
func NewAttach(pods *connect.Pods) *Attach { return &Attach{pods} }

// New implements rest.Storage: what admission is shown.
func (*Attach) New() runtime.Object { return &corev1.PodAttachOptions{} }

// NewConnectOptions implements rest.Connecter.
func (*Attach) NewConnectOptions() (runtime.Object, bool, string) {
	return &corev1.PodAttachOptions{}, false, ""
}

// Connect implements rest.Connecter.
func (a *Attach) Connect(ctx context.Context, name string, options runtime.Object,
	r rest.Responder) (http.Handler, error) {
	opts, ok := options.(*corev1.PodAttachOptions)
	if !ok {
		return nil, fmt.Errorf("invalid options object: %T", options)
	}
	streams := proxy.Options{Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr, Tty: opts.TTY}
	return a.Command(ctx, connect.Command{Verb: "attach", Pod: name, Container: opts.Container, Streams: streams,
		Chosen: func(container string) {
			record.Note(ctx, debugrun.AuditKind, debugrun.AuditAttach)
			record.NoteCommand(ctx, container, nil)
		}}, r)
}
