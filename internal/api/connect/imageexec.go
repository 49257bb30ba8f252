// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/wire"
)

// ImageRun is a command to be run from an image inside a pod.
type ImageRun struct {
	Image     string
	Command   []string // none: the image's own
	Container string   // whose processes it sees, if any
	Writable  bool
	// PullPolicy is when the node pulls the image; none: by the image's tag.
	PullPolicy string
	User       *debugask.User // nil: the node decides
	UserOf     string         // whose user the node takes where root may not be
}

// imageRun reads what is asked for (IX-01).
func (o *ExecOptions) imageRun() (ImageRun, error) {
	run := ImageRun{Image: o.Image, Command: o.Command, Container: o.Container, Writable: o.Writable,
		PullPolicy: o.PullPolicy, UserOf: o.UserOf}
	if o.Image == "" {
		return run, apierrors.NewBadRequest(fmt.Sprintf("%s is missing: %s have no effect without it",
			debugask.ParamExecImage, strings.Join(imageParams()[1:], ", ")))
	}
	var err error
	if run.User, err = user(debugask.ParamExecUser, o.User); err != nil {
		return run, err
	}
	if _, err := reference.ParseAnyReference(o.Image); err != nil {
		return run, apierrors.NewBadRequest(fmt.Sprintf("%q is not an image name: %v", o.Image, err))
	}
	return run, pullPolicy(debugask.ParamExecPullPolicy, o.PullPolicy)
}

// ask is the run as the node reads it.
func (run ImageRun) ask(streams proxy.Options) wire.ImageExec {
	ask := wire.ImageExec{
		Image: run.Image, Command: run.Command, Container: run.Container, Writable: run.Writable,
		PullPolicy: run.PullPolicy, UserOf: run.UserOf, Stdin: streams.Stdin, Stdout: streams.Stdout,
		Stderr: streams.Stderr, TTY: streams.Tty,
	}
	if run.User != nil {
		ask.User = run.User.String()
	}
	return ask
}

// imageExec runs a command from an image inside a pod. All that can be known is refused before anything is on record or
// the connection upgraded (IX-01, IX-07, IX-12).
func (e *Exec) imageExec(ctx context.Context, name string, o *ExecOptions, r rest.Responder) (http.Handler, error) {
	run, err := o.imageRun()
	if err != nil {
		return nil, err
	}
	if err := o.someStream(); err != nil {
		return nil, err
	}
	pod, err := e.pods(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{run.Container, run.UserOf} {
		if name != "" && !slices.Contains(containerNames(pod), name) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
		}
	}
	if run, err = e.debugging.ImageAllowed(ctx, pod, run); err != nil {
		return nil, err
	}
	path, query := wire.RouteImageExec.Path(pod.Namespace, pod.Name), run.ask(o.Streams()).Query()
	location, transport, err := e.kubelet(ctx, pod, path, query)
	if err != nil {
		return nil, err
	}
	if err := canImageExec(ctx, pod, location, transport); err != nil {
		return nil, err
	}
	finish, err := e.debugging.ImageExec(ctx, pod, run)
	if err != nil {
		return nil, err
	}
	return &recorded{next: handOver(pod, location, transport, o.Streams(), r), finish: func(end End) {
		noteEnd(ctx, end)
		finish(end)
	}}, nil
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
		return unreachable(pod.Spec.NodeName, err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return unreachable(pod.Spec.NodeName, err)
	}
	text := strings.TrimSpace(string(said))
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
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotImplemented",
		Message: fmt.Sprintf("image exec into pod %s: not implemented: %s", pod.Name, what),
		Details: &metav1.StatusDetails{Kind: "pods", Name: pod.Name},
	}}
}

// recorded is a stream with a record, which is finished when the stream is over.
type recorded struct {
	next   http.Handler
	finish func(End)
}

// ServeHTTP implements http.Handler.
func (h *recorded) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w, heard := overhear(w)
	h.next.ServeHTTP(w, req)
	h.finish(heard.end())
}
