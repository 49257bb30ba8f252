// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// whole is the one document of all groups that OpenAPI v2 is: this server's with what others have of theirs. Others are
// asked for each who asks here, since nobody tells when they change; but whoever waits meanwhile has the same answer,
// and what is made of the same documents is made once.
type whole struct {
	begun atomic.Uint64 // how many times it was begun to be made

	mu     sync.Mutex   // one makes it at a time
	ended  uint64       // begun, when it was made last
	madeOf [32]byte     // the hash of the documents
	serve  http.Handler // nil: others have nothing for it
}

// wholeDocument answers for OpenAPI v2.
func (a *Aggregator) wholeDocument(next http.Handler, w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		read := func() ([]byte, []theirs) { return a.sources(next, req) }
		if serve := a.whole.since(a.whole.begun.Load(), read, a.leftOut); serve != nil {
			serve.ServeHTTP(w, req)
			return
		}
	}
	next.ServeHTTP(w, req)
}

// since is what answers one who asked when it had been begun so many times; nil: this server's own document is all.
// read gives that, and what others have. It is not called if it was called since, for another: what that found is no
// older than the question.
func (d *whole) since(asked uint64, read func() ([]byte, []theirs), leftOut func(error)) http.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended > asked {
		return d.serve
	}
	begun := d.begun.Add(1)
	own, others := read()
	if of := hashOf(own, others); of != d.madeOf {
		d.serve, d.madeOf = merge(own, others, leftOut), of
	}
	d.ended = begun
	return d.serve
}

// hashOf is equal for equal documents.
func hashOf(own []byte, others []theirs) [32]byte {
	all := sha256.New()
	_ = json.NewEncoder(all).Encode(len(own))
	all.Write(own)
	for _, o := range others {
		_ = json.NewEncoder(all).Encode([]any{o.below, len(o.text)})
		all.Write(o.text)
	}
	return [32]byte(all.Sum(nil))
}

// merge makes one document of all; nil if it would be this server's own. (Pure.)
func merge(own []byte, others []theirs, leftOut func(error)) http.Handler {
	merged := &spec.Swagger{}
	if len(others) == 0 || merged.UnmarshalJSON(own) != nil {
		return nil
	}
	more := false
	for _, o := range others {
		added, err := o.addTo(merged)
		if err != nil {
			leftOut(err)
		}
		more = more || added
	}
	if !more {
		return nil
	}
	var serve answering
	handler.NewOpenAPIService(merged).RegisterOpenAPIVersionedService(openAPIv2, &serve)
	return serve
}

func (a *Aggregator) leftOut(err error) {
	a.o.Log.Warn("the OpenAPI v2 document of another API server is left out", "err", err)
}

// sources are this server's own document, and those of others. Whoever asks may go away: others may wait for the same.
func (a *Aggregator) sources(next http.Handler, req *http.Request) (own []byte, others []theirs) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), documentTime)
	defer cancel()
	if t := a.routes.Load(); t != nil {
		others = t.wholeDocuments(ctx)
	}
	if len(others) == 0 {
		return nil, nil
	}
	text := &kept{header: http.Header{}, code: http.StatusOK}
	plain := req.Clone(ctx)
	plain.Method = http.MethodGet
	plain.Header = http.Header{"Accept": {"application/json"}} // no conditions, no compression
	next.ServeHTTP(text, plain)
	if text.code != http.StatusOK {
		return nil, nil
	}
	return bytes.Clone(text.body.Bytes()), others
}

// wholeDocuments are what other servers have, in the order of their first groups: each is asked once, whatever number
// of groups it has. One that does not answer has none.
func (t *table) wholeDocuments(ctx context.Context) []theirs {
	servers := t.servers(ctx)
	found := make([]theirs, len(servers))
	var asking sync.WaitGroup
	for i, routes := range servers {
		asking.Go(func() {
			text, err := routes[0].fetch(ctx, asker(), openAPIv2)
			if err != nil || len(text) == 0 {
				return
			}
			found[i].text = text
			for _, r := range routes {
				found[i].below = append(found[i].below, r.path+"/")
			}
		})
	}
	asking.Wait()
	var out []theirs
	for _, o := range found {
		if o.text != nil {
			out = append(out, o)
		}
	}
	return out
}

// servers are the routes that are open, together for each server that they lead to.
func (t *table) servers(ctx context.Context) (out [][]*route) {
	at := map[string]int{}
	for _, r := range t.ordered {
		if r.closed(ctx) != nil {
			continue
		}
		key := r.server()
		i, known := at[key]
		if !known {
			i = len(out)
			at[key], out = i, append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// answering is the handler that was given for a path.
type answering struct{ http.Handler }

// Handle implements common.PathHandler.
func (a *answering) Handle(_ string, h http.Handler) { a.Handler = h }
