// SPDX-License-Identifier: Apache-2.0

package podtime

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/leaktest"
	"github.com/wherryproject/wherry/internal/timeline"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// cluster is an API server as far as a timeline needs it; its nodes answer as their handlers do.
type cluster struct {
	mu    sync.Mutex
	pod   *corev1.Pod
	nodes map[string]http.HandlerFunc
	deny  bool
	asked int // for the pod
	// own answers pods/timeline; nil: the API server is of another make.
	own http.HandlerFunc
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	pod := c.pod
	node := c.nodes[strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/nodes/"), "/")[0]]
	deny, own := c.deny, c.own
	c.mu.Unlock()
	answer := func(code int, o runtime.Object, kind string) {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(o)
	}
	switch {
	case r.URL.Path == "/api/v1/namespaces/default/pods/web/timeline" && own != nil:
		own(w, r)
	case r.URL.Path == "/api/v1/nodes":
		list := &corev1.NodeList{}
		for name := range c.nodes {
			list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		answer(200, list, "NodeList")
	case r.URL.Path == "/api/v1/namespaces/default/pods/web" && pod != nil:
		c.mu.Lock()
		c.asked++
		c.mu.Unlock()
		answer(200, pod.DeepCopy(), "Pod")
	case strings.HasSuffix(r.URL.Path, "/proxy/timeline/default/web") && deny:
		s := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "node-1", errors.New("no")).Status()
		answer(403, &s, "Status")
	case strings.HasSuffix(r.URL.Path, "/proxy/timeline/default/web") && node != nil:
		node(w, r)
	default:
		s := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web").Status()
		answer(404, &s, "Status")
	}
}

func (c *cluster) source(t *testing.T) Source {
	t.Helper()
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL, QPS: -1, Transport: &http.Transport{DisableKeepAlives: true}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return Source{client}
}

func bound(node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"},
		Spec: corev1.PodSpec{NodeName: node}}
}

func history(moments ...timeline.Moment) timeline.History {
	return timeline.History{Pod: timeline.Pod{Namespace: "default", Name: "web", UID: "u1"}, Moments: moments,
		Now: time.Unix(1, 0)}
}

func says(h timeline.History) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(h) }
}

// refuses answers as wherry's API server does.
func refuses(code int32, cause, why string) http.HandlerFunc {
	s := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: code, Message: "said by the server",
		Reason: map[int32]metav1.StatusReason{403: metav1.StatusReasonForbidden,
			404: metav1.StatusReasonNotFound}[code],
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseType(cause), Message: why}}}}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(code))
		_ = json.NewEncoder(w).Encode(s)
	}
}

func unknown(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, `this node keeps no timeline of a pod "web" in namespace "default"`, http.StatusNotFound)
}

func TestGet(t *testing.T) {
	pending := bound("")
	pending.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Message: "0/1 nodes: too little cpu"}}
	has := map[string]http.HandlerFunc{"node-1": says(history(timeline.Moment{Seq: 1, What: timeline.Seen}))}
	for name, c := range map[string]struct {
		cluster *cluster
		err     string
	}{
		"from its node": {&cluster{pod: bound("node-1"), nodes: has}, ""},
		"gone, but remembered": {&cluster{nodes: map[string]http.HandlerFunc{"node-0": unknown,
			"node-1": has["node-1"]}}, ""},
		"gone": {&cluster{nodes: map[string]http.HandlerFunc{"node-0": unknown}},
			"there is no pod web in namespace default, and no node remembers one"},
		"no node yet": {&cluster{pod: pending},
			"pod default/web has no node yet, so nothing has happened to it: 0/1 nodes: too little cpu"},
		"a node that has not heard": {&cluster{pod: bound("node-0"),
			nodes: map[string]http.HandlerFunc{"node-0": unknown}}, "node node-0 has not heard of pod default/web"},
		"a node of another make": {&cluster{pod: bound("node-0"),
			nodes: map[string]http.HandlerFunc{"node-0": http.NotFound}},
			"node node-0 keeps no timelines: its agent is not wherry's"},
		"a user who may not ask": {&cluster{pod: bound("node-1"), nodes: has, deny: true},
			"you may not ask it (get nodes/proxy)"},
		"the pod's subresource": {&cluster{own: has["node-1"], deny: true}, ""},
		"the same, without a node": {&cluster{own: refuses(404, timeline.CauseUnbound, "no room")},
			"pod default/web has no node yet, so nothing has happened to it: no room"},
		"the same, unknown": {&cluster{own: refuses(404, timeline.CauseUnknown, "")},
			"said by the server"},
		"the same, not kept": {&cluster{own: refuses(404, timeline.CauseNotKept, "")},
			"said by the server"},
		"a user who may not read it": {&cluster{own: refuses(403, "", ""), pod: bound("node-1"), nodes: has,
			deny: true}, "you may not read the timelines of pods in namespace default (get pods/timeline)"},
		"only the way by the node": {&cluster{own: refuses(403, "", ""), pod: bound("node-1"), nodes: has}, ""},
		"a node that answers other JSON": {&cluster{pod: bound("node-1"),
			nodes: map[string]http.HandlerFunc{"node-1": func(w http.ResponseWriter,
				_ *http.Request) {
				_, _ = w.Write([]byte("[]"))
			}}}, "is not a timeline"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := c.cluster.source(t).Get(t.Context(), "default", "web")
			switch {
			case c.err == "" && (err != nil || h.UID != "u1" || len(h.Moments) != 1):
				t.Errorf("%v, %+v", err, h)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("got %v, want %s", err, c.err)
			}
		})
	}
}

// A stream that breaks is taken up again, and ends with the pod.
func TestFollow(t *testing.T) {
	calls := 0
	c := &cluster{pod: bound("node-1")}
	c.nodes = map[string]http.HandlerFunc{"node-1": func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "1" {
			t.Error("not a stream")
		}
		calls++
		out := json.NewEncoder(w)
		_ = out.Encode(history(timeline.Moment{Seq: 1, What: timeline.Seen}))
		if calls == 1 {
			return // the agent is restarted
		}
		_ = out.Encode(timeline.History{Moments: []timeline.Moment{{Seq: 2, What: timeline.Left}}, Gone: true})
	}}
	var h timeline.History
	if err := c.source(t).Follow(t.Context(), "default", "web",
		func(part timeline.History) { h.Merge(part) }); err != nil {
		t.Fatal(err)
	}
	if calls != 2 || !h.Gone || len(h.Moments) != 2 {
		t.Errorf("%d calls, %+v", calls, h)
	}
}

// Following waits for a pod that has no node, and ends with its context.
func TestFollowWaits(t *testing.T) {
	c := &cluster{pod: bound("")}
	s := c.source(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Follow(ctx, "default", "web", func(timeline.History) {}) }()
	for asked := 0; asked < 2; time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		default:
		}
		c.mu.Lock()
		asked = c.asked
		c.mu.Unlock()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
