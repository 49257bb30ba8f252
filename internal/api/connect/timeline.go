// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/timeline"
)

// NodeLister lists the names of all nodes.
type NodeLister func(ctx context.Context) ([]string, error)

// Timeline serves pods/timeline: what the pod's node has noted of its life. Who may read the pod's status may read it, while the node's
// own API, which has it, is open to administrators only.
type Timeline struct {
	pods  PodGetter
	nodes NodeLocator
	all   NodeLister
}

var _ rest.Connecter = &Timeline{}

// NewTimeline makes the storage of pods/timeline.
func NewTimeline(pods PodGetter, nodes NodeLocator, all NodeLister) *Timeline {
	return &Timeline{pods: pods, nodes: nodes, all: all}
}

// New implements rest.Storage: what admission is shown.
func (*Timeline) New() runtime.Object { return &corev1.PodProxyOptions{} }

// Destroy implements rest.Storage.
func (*Timeline) Destroy() {}

// ConnectMethods implements rest.Connecter.
func (*Timeline) ConnectMethods() []string { return []string{http.MethodGet} }

// NewConnectOptions implements rest.Connecter. The two parameters go to the node as they are.
func (*Timeline) NewConnectOptions() (runtime.Object, bool, string) {
	return &corev1.PodProxyOptions{}, false, ""
}

// Connect implements rest.Connecter.
func (t *Timeline) Connect(ctx context.Context, name string, _ runtime.Object, r rest.Responder) (http.Handler, error) {
	namespace := request.NamespaceValue(ctx)
	if bad := path.IsValidPathSegmentName(name); len(bad) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid pod name %q: %s", name, strings.Join(bad, "; ")))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		q := url.Values{}
		for _, key := range []string{"watch", "uid"} {
			if v := req.URL.Query().Get(key); v != "" {
				q.Set(key, v)
			}
		}
		answer, err := t.find(ctx, namespace, name, q)
		if err != nil {
			r.Error(err)
			return
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.Copy(flushing{w}, answer.Body) // the one or the other end has gone: nobody is left to be told
	}), nil
}

// find asks the pod's node, or for a pod that is gone all nodes, for the timeline.
func (t *Timeline) find(ctx context.Context, namespace, name string, q url.Values) (*http.Response, error) {
	pod, err := t.pods(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return t.search(ctx, namespace, name, q)
	case err != nil:
		return nil, err
	case pod.Spec.NodeName == "":
		return nil, noTimeline(name, timeline.CauseUnbound, whyUnbound(pod), "pod %s/%s has no node yet, so nothing has happened to it", namespace, name)
	}
	node := pod.Spec.NodeName
	answer, err := t.ask(ctx, node, namespace, name, q)
	if err != nil {
		return nil, unreachable(node, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // what came of it says more than nothing
	switch {
	case answer.StatusCode == http.StatusNotFound && strings.Contains(string(text), "keeps no timeline"):
		return nil, noTimeline(name, timeline.CauseUnknown, "", "node %s has not heard of pod %s/%s", node, namespace, name)
	case answer.StatusCode == http.StatusNotFound:
		return nil, noTimeline(name, timeline.CauseNotKept, "", "node %s keeps no timelines: its agent is not wherry's", node)
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("node %s answered %s: %s", node, answer.Status, strings.TrimSpace(string(text))))
}

// search asks every node for a pod that is not there any more. One that does not answer is as good as one that does not remember.
func (t *Timeline) search(ctx context.Context, namespace, name string, q url.Values) (*http.Response, error) {
	nodes, err := t.all(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		answer, err := t.ask(ctx, node, namespace, name, q)
		if err != nil {
			continue
		}
		if answer.StatusCode == http.StatusOK {
			return answer, nil
		}
		answer.Body.Close()
	}
	return nil, noTimeline(name, timeline.CauseUnknown, "", "there is no pod %s in namespace %s, and no node remembers one", name, namespace)
}

// answerTime bounds how long a node may take to begin its answer: one that is silent holds up those that are asked after it.
const answerTime = 10 * time.Second

// ask asks a node.
func (t *Timeline) ask(ctx context.Context, node, namespace, name string, q url.Values) (*http.Response, error) {
	location, transport, err := t.nodes(ctx, node)
	if err != nil {
		return nil, err
	}
	u := location.JoinPath("timeline", url.PathEscape(namespace), url.PathEscape(name))
	u.RawQuery = q.Encode()
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(answerTime, cancel)
	defer late.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel()
		return nil, err
	}
	answer, err := transport.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = ending{answer.Body, cancel}
	return answer, nil
}

// ending ends a request with its body.
type ending struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close implements io.Closer.
func (e ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

func whyUnbound(pod *corev1.Pod) string {
	if c := podspec.Condition(&pod.Status, corev1.PodScheduled); c != nil {
		return c.Message
	}
	return ""
}

// noTimeline is a 404 whose cause says more precisely what is not there.
func noTimeline(name, cause, why, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if why != "" {
		text += ": " + why
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: text,
		Details: &metav1.StatusDetails{Kind: "pods", Name: name, Causes: []metav1.StatusCause{{Type: metav1.CauseType(cause), Message: why}}},
	}}
}

// flushing sends what is written at once: a stream's lines are to be seen when they come.
type flushing struct{ http.ResponseWriter }

// Write implements io.Writer.
func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}
