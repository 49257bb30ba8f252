// SPDX-License-Identifier: Apache-2.0

package nodenetwork

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
)

// watchFor is how long a watch lasts at most; the client asks anew then.
const watchFor = 30 * time.Minute

// Store is where objects of a kind are; see [registry.REST].
type Store interface {
	rest.Lister
	rest.Watcher
	// Within is ctx as if a request for this kind had come.
	Within(ctx context.Context, namespace string) context.Context
}

// Handler serves the paths.
type Handler struct {
	cluster func(context.Context) Cluster
	pods    Store
	nodes   Store
	life    context.Context
	end     context.CancelFunc
}

// New makes a handler. cluster says what the cluster is, when it is asked for.
func New(cluster func(context.Context) Cluster, pods, nodes Store) *Handler {
	h := &Handler{cluster: cluster, pods: pods, nodes: nodes}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// Stop ends the watches: their clients go on with the next server.
func (h *Handler) Stop() { h.end() }

// Register has a mux serve the paths.
func (h *Handler) Register(m interface{ Handle(string, http.Handler) }) {
	m.Handle(Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if onlyGet(w, r) {
			writeJSON(w, http.StatusOK, h.cluster(r.Context()))
		}
	}))
	m.Handle(PodsPath, h.serve(h.pods, slimPods, func(o runtime.Object) runtime.Object {
		if p, ok := o.(*corev1.Pod); ok {
			return SlimPod(p)
		}
		return nil
	}))
	m.Handle(NodesPath, h.serve(h.nodes, slimNodes, func(o runtime.Object) runtime.Object {
		if n, ok := o.(*corev1.Node); ok {
			return SlimNode(n)
		}
		return nil
	}))
}

// IsWatch recognises requests for watches of these paths, which last.
func IsWatch(r *http.Request) bool {
	if r.URL.Path != PodsPath && r.URL.Path != NodesPath {
		return false
	}
	yes, err := strconv.ParseBool(r.URL.Query().Get("watch"))
	return err == nil && yes
}

// serve lists and watches one kind. slim makes what may be told of an object, nil of one that is none.
func (h *Handler) serve(s Store, list func(runtime.Object) runtime.Object,
	slim func(runtime.Object) runtime.Object) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !onlyGet(w, r) {
			return
		}
		o, err := options(r)
		if err != nil {
			writeError(w, err)
			return
		}
		if IsWatch(r) {
			h.watch(w, r, s, o, slim)
			return
		}
		found, err := s.List(s.Within(r.Context(), ""), o)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, list(found))
	})
}

// options reads what was asked for. Selectors would be answered wrongly, and are refused.
func options(r *http.Request) (*metainternal.ListOptions, error) {
	var o metainternal.ListOptions
	if err := metascheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, &o); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	switch {
	case o.LabelSelector != nil && !o.LabelSelector.Empty(), o.FieldSelector != nil && !o.FieldSelector.Empty():
		return nil, apierrors.NewBadRequest(r.URL.Path + " takes no selectors: it is read whole")
	case o.SendInitialEvents != nil:
		return nil, apierrors.NewBadRequest(r.URL.Path + " has no streaming lists: list it, then watch it")
	}
	return &o, nil
}

func (h *Handler) watch(w http.ResponseWriter, r *http.Request, s Store, o *metainternal.ListOptions,
	slim func(runtime.Object) runtime.Object) {
	longest := watchFor
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 && *o.TimeoutSeconds < int64(watchFor/time.Second) {
		longest = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(s.Within(r.Context(), ""), longest)
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	events, err := s.Watch(ctx, o)
	if err != nil {
		writeError(w, err)
		return
	}
	defer events.Stop()
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(http.StatusOK)
	stream := http.NewResponseController(w)
	if stream.Flush() != nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-events.ResultChan():
			if !open || writeEvent(w, e, slim) != nil || stream.Flush() != nil {
				return
			}
		}
	}
}

// writeEvent writes one event as a line of JSON.
func writeEvent(w http.ResponseWriter, e watch.Event, slim func(runtime.Object) runtime.Object) error {
	obj := slim(e.Object)
	if obj == nil {
		status, ok := e.Object.(*metav1.Status)
		if !ok {
			return nil // nothing is told of what is of no known kind
		}
		status = status.DeepCopy()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		obj = status
	}
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: string(e.Type),
			Object: runtime.RawExtension{Raw: text}})
	}
	return err
}

func slimPods(found runtime.Object) runtime.Object {
	list, ok := found.(*corev1.PodList)
	if !ok {
		return nil
	}
	out := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: list.ListMeta,
		Items: make([]corev1.Pod, 0, len(list.Items))}
	for i := range list.Items {
		out.Items = append(out.Items, *SlimPod(&list.Items[i]))
	}
	return out
}

func slimNodes(found runtime.Object) runtime.Object {
	list, ok := found.(*corev1.NodeList)
	if !ok {
		return nil
	}
	out := &corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: list.ListMeta,
		Items: make([]corev1.Node, 0, len(list.Items))}
	for i := range list.Items {
		out.Items = append(out.Items, *SlimNode(&list.Items[i]))
	}
	return out
}

func onlyGet(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet {
		return true
	}
	w.Header().Set("Allow", http.MethodGet)
	http.Error(w, r.URL.Path+" is only read", http.StatusMethodNotAllowed)
	return false
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

// writeError answers as the API's other paths do.
func writeError(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).Status()
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	writeJSON(w, int(status.Code), status)
}
