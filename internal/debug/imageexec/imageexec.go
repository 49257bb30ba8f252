// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/resourcequota"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/debug/options"
	"github.com/wherryproject/wherry/internal/debug/permit"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/debug/wire"
)

// Server serves image execs.
type Server struct {
	pods     *connect.Pods
	permit   *permit.Permit
	recorder *record.Recorder
	quotas   *resourcequota.Quotas
}

// New makes a Server; what runs in a pod is charged to the quotas of its namespace.
func New(pods *connect.Pods, may *permit.Permit, recorder *record.Recorder, quotas *resourcequota.Quotas) *Server {
	return &Server{pods: pods, permit: may, recorder: recorder, quotas: quotas}
}

// Serve runs a command from an image inside a pod. All that can be known is refused before anything is on record or the
// connection upgraded (IX-01, IX-07, IX-12).
func (s *Server) Serve(ctx context.Context, name string, run options.ImageRun, streams proxy.Options,
	r rest.Responder) (http.Handler, error) {
	pod, err := s.pods.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{run.Container, run.UserOf} {
		if name != "" && !slices.Contains(connect.ContainerNames(pod), name) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
		}
	}
	if run, err = s.allowed(ctx, pod, run); err != nil {
		return nil, err
	}
	path, query := wire.RouteImageExec.Path(pod.Namespace, pod.Name), ask(run, streams).Query()
	location, transport, err := s.pods.Kubelet(ctx, pod, path, query)
	if err != nil {
		return nil, err
	}
	if err := canImageExec(ctx, pod, location, transport); err != nil {
		return nil, err
	}
	finish, err := s.begin(ctx, pod, run)
	if err != nil {
		return nil, err
	}
	return record.Stream(connect.HandOver(pod, location, transport, streams, r), func(end record.End) {
		record.NoteEnd(ctx, end)
		finish(end)
	}), nil
}

// begin charges quotas, and puts on record that a command is about to run.
func (s *Server) begin(ctx context.Context, pod *corev1.Pod, run options.ImageRun) (func(record.End), error) {
	spec := debugrun.DebugRunSpec{Image: run.Image, Command: run.Command, Target: run.Container, Writable: run.Writable}
	record.NoteImageExec(ctx, spec)
	leave, err := s.quotas.Visit(ctx, s.permit.Attributes(ctx, pod, pod), pod)
	if err != nil {
		return nil, err
	}
	finish, err := s.recorder.ImageExec(ctx, pod, spec)
	if err != nil {
		leave()
		return nil, err
	}
	return func(end record.End) {
		leave()
		finish(end)
	}, nil
}

// ask is a run as the node reads it.
func ask(run options.ImageRun, streams proxy.Options) wire.ImageExec {
	out := wire.ImageExec{
		Image: run.Image, Command: run.Command, Container: run.Container, Writable: run.Writable,
		PullPolicy: run.PullPolicy, UserOf: run.UserOf, Stdin: streams.Stdin, Stdout: streams.Stdout,
		Stderr: streams.Stderr, TTY: streams.Tty,
	}
	if run.User != nil {
		out.User = run.User.String()
	}
	return out
}

// canImageExec asks the node, without naming an image, whether it has image exec at all: one that has refuses the
// request itself, one that has not says so, in which case nothing must have been recorded yet (IX-12, DC-17).
func canImageExec(ctx context.Context, pod *corev1.Pod, location *url.URL, transport http.RoundTripper) error {
	bare := *location
	bare.RawQuery = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, bare.String(), nil)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return connect.Unreachable(pod.Spec.NodeName, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return connect.Unreachable(pod.Spec.NodeName, err)
	}
	text := strings.TrimSpace(string(body))
	switch {
	case resp.StatusCode == http.StatusNotImplemented:
		return notImplemented(pod, text)
	// no such route; one that is there misses the image before it looks for the pod
	case resp.StatusCode == http.StatusNotFound:
		return notImplemented(pod, fmt.Sprintf("node %s has no image exec", pod.Spec.NodeName))
	}
	return nil
}

func notImplemented(pod *corev1.Pod, what string) error {
	return permit.Refusal(http.StatusNotImplemented, "NotImplemented", pod.Name,
		"image exec into pod %s: not implemented: %s", pod.Name, what)
}
