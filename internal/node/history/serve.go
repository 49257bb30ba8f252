// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/wherryproject/wherry/internal/names/asked"
	"github.com/wherryproject/wherry/internal/timeline"
)

// beat is how often a stream says the time when nothing else happens, so that neither end takes the other for dead.
const beat = 10 * time.Second

// ServeHTTP answers GET .../{namespace}/{pod} with the history of the newest pod of that name, or with ?uid= of that
// very one, as JSON. With ?watch=1 the answer is a stream of JSON lines: the first is the whole history, each later one
// what has changed; it ends when the pod is gone. With ?names=1 it says, once, which names the pod has looked up.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	namespace, name, uid := req.PathValue("namespace"), req.PathValue("pod"), req.URL.Query().Get("uid")
	h, changed, ok := r.Find(namespace, name, uid, time.Now())
	if !ok {
		http.Error(w, fmt.Sprintf("this node keeps no timeline of a pod %q in namespace %q", name, namespace),
			http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if req.URL.Query().Get(timeline.Names) == "1" {
		h.Names, h.NoNames = r.names(req.Context(), h.UID)
	}
	if q := req.URL.Query().Get("watch"); q != "1" && q != "true" {
		_ = json.NewEncoder(w).Encode(h)
		return
	}
	r.stream(w, req, h, changed)
}

// names asks who knows which names a pod has looked up.
func (r *Recorder) names(ctx context.Context, uid string) ([]asked.Asked, string) {
	if r.cfg.Names == nil {
		return nil, "the pods of this node ask another resolver, which does not tell wherry"
	}
	all, err := r.cfg.Names(ctx, uid)
	if err != nil {
		return nil, err.Error()
	}
	return all, ""
}

func (r *Recorder) stream(w http.ResponseWriter, req *http.Request, h timeline.History, changed <-chan struct{}) {
	out, sent := json.NewEncoder(w), sentOf{}
	flush := http.NewResponseController(w).Flush
	tick := time.NewTicker(beat)
	defer tick.Stop()
	whole := true
	for {
		part := sent.part(h)
		if whole {
			part, whole = h, false
		}
		if out.Encode(part) != nil || flush() != nil || h.Gone {
			return
		}
		select {
		case <-req.Context().Done():
			return
		case <-tick.C:
		case <-changed:
		}
		var ok bool
		if h, changed, ok = r.Find(h.Namespace, h.Name, h.UID, time.Now()); !ok {
			return // swept away
		}
	}
}

// sentOf is what a stream has sent of each moment: how often it happened.
type sentOf map[int]int

// part returns what has changed since the last call.
func (s sentOf) part(h timeline.History) timeline.History {
	out := timeline.History{Gone: h.Gone, Now: h.Now, Moments: []timeline.Moment{}}
	if n := len(h.Containers); s[-1] != n {
		out.Pod, s[-1] = h.Pod, n
	}
	for _, m := range h.Moments {
		if times, ok := s[m.Seq]; !ok || times != m.Times {
			out.Moments = append(out.Moments, m)
			s[m.Seq] = m.Times
		}
	}
	return out
}
