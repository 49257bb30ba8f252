// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/wherryproject/wherry/internal/streams"
	"github.com/wherryproject/wherry/internal/timeline"
)

// NodeLister lists the names of all nodes.
type NodeLister func(ctx context.Context) ([]string, error)

// NamespaceGetter gets a namespace by name.
type NamespaceGetter func(ctx context.Context, name string) (*corev1.Namespace, error)

// Timeline serves pods/timeline: what the pod's node has noted of its life. Who may read the pod's status may read it,
// while the node's own API, which has it, is open to administrators only. Nodes remember pods that are gone by the
// names of their namespaces; shown are those of the namespace that has the name now, not of one that was deleted
// before.
type Timeline struct {
	pods       PodGetter
	namespaces NamespaceGetter
	nodes      NodeLocator
	all        NodeLister
}

var _ rest.Connecter = &Timeline{}

// NewTimeline makes the storage of pods/timeline.
func NewTimeline(pods PodGetter, namespaces NamespaceGetter, nodes NodeLocator, all NodeLister) *Timeline {
	return &Timeline{pods: pods, namespaces: namespaces, nodes: nodes, all: all}
}

// New implements rest.Storage: what admission is shown.
func (*Timeline) New() runtime.Object { return &corev1.PodProxyOptions{} }

// Destroy implements rest.Storage.
func (*Timeline) Destroy() {}

// ConnectMethods implements rest.Connecter.
func (*Timeline) ConnectMethods() []string { return []string{http.MethodGet} }

// NewConnectOptions implements rest.Connecter. The parameters go to the node as they are.
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
		for _, key := range []string{"watch", "uid", timeline.Names} {
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
	case q.Has("uid") && q.Get("uid") != string(pod.UID): // an earlier pod
		return t.search(ctx, namespace, name, q)
	case pod.Spec.NodeName == "":
		return nil, noTimeline(name, timeline.CauseUnbound, whyUnbound(pod),
			"pod %s/%s has no node yet, so nothing has happened to it", namespace, name)
	}
	node := pod.Spec.NodeName
	q.Set("uid", string(pod.UID)) // until the node has heard of this one, the newest it knows is another
	answer, err := t.ask(ctx, node, namespace, name, q)
	if err != nil {
		return nil, Unreachable(node, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, streams.MaxRefusal)) // what came of it says more than nothing
	switch {
	case answer.StatusCode == http.StatusNotFound && strings.Contains(string(text), "keeps no timeline"):
		return nil, noTimeline(name, timeline.CauseUnknown, "", "node %s has not heard of pod %s/%s", node, namespace,
			name)
	case answer.StatusCode == http.StatusNotFound:
		return nil, noTimeline(name, timeline.CauseNotKept, "", "node %s keeps no timelines: its agent is not wherry's",
			node)
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("node %s answered %s: %s", node, answer.Status,
		strings.TrimSpace(string(text))))
}

// search asks every node for a pod that is not there any more. One that does not answer is as good as one that does not
// remember, and so is one that remembers a pod of an earlier namespace of that name: that was perhaps somebody else's.
func (t *Timeline) search(ctx context.Context, namespace, name string, q url.Values) (*http.Response, error) {
	ns, err := t.namespaces(ctx, namespace)
	if apierrors.IsNotFound(err) {
		return nil, noTimeline(name, timeline.CauseUnknown, "", "there is no namespace %s", namespace)
	} else if err != nil {
		return nil, err
	}
	nodes, err := t.all(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		answer, err := t.ask(ctx, node, namespace, name, q)
		if err != nil {
			continue
		}
		if answer.StatusCode == http.StatusOK && within(answer, ns.CreationTimestamp.Time) {
			return answer, nil
		}
		answer.Body.Close()
	}
	return nil,
		noTimeline(name, timeline.CauseUnknown, "", "there is no pod %s in namespace %s, and no node remembers one",
			name, namespace)
}

// within reports whether an answer is about a pod of the namespace that was created at a time; what it reads for that
// can be read again.
func within(answer *http.Response, created time.Time) bool {
	late := time.AfterFunc(answerTime, func() { answer.Body.Close() })
	defer late.Stop()
	var first json.RawMessage
	in := json.NewDecoder(io.LimitReader(answer.Body, maxTimeline))
	var h timeline.History
	if in.Decode(&first) != nil || json.Unmarshal(first, &h) != nil || !h.Within(created) {
		return false
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), in.Buffered(), answer.Body), answer.Body}
	return true
}

// maxTimeline bounds what is read of a node's answer at once: several times what a node keeps of a pod.
const maxTimeline = 1 << 20

// answerTime bounds how long a node may take to begin its answer: one that is silent holds up those that are asked
// after it.
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
		Details: &metav1.StatusDetails{Kind: "pods", Name: name,
			Causes: []metav1.StatusCause{{Type: metav1.CauseType(cause), Message: why}}},
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
