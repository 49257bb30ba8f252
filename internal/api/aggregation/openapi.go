// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/streaming/pkg/httpstream"
)

// documentTime is how long another server may take to list its documents; the list does without it then.
const documentTime = 5 * time.Second

// asker is who asks others for documents, as Kubernetes' own aggregator.
func asker() user.Info {
	return &user.DefaultInfo{Name: "system:aggregator"}
}

// document answers for OpenAPI v3: what other servers have is read from them at each request, and kept nowhere. rest is
// the path below /openapi/v3. Others are asked in this server's own name, so for their documents, and for nothing that
// a client has put behind.
func (a *Aggregator) document(t *table, rest string, next http.Handler, w http.ResponseWriter, req *http.Request) {
	if strings.Trim(rest, "/") == "" {
		listDocuments(t, next, w, req)
		return
	}
	reads := req.Method == http.MethodGet || req.Method == http.MethodHead
	if r := t.byPath[rest]; r != nil && reads && !httpstream.IsUpgradeRequest(req) {
		r.ServeHTTP(w, req.WithContext(request.WithUser(req.Context(), asker())))
		return
	}
	next.ServeHTTP(w, req)
}

// listDocuments adds to this server's list what others list of their groups.
func listDocuments(t *table, next http.Handler, w http.ResponseWriter, req *http.Request) {
	whole := req.Clone(req.Context()) // not one that the client may have already
	whole.Header.Del("If-None-Match")
	whole.Header.Del("If-Modified-Since")
	whole.Header.Del("Range")
	own := &kept{header: http.Header{}, code: http.StatusOK}
	next.ServeHTTP(own, whole)
	var list handler3.OpenAPIV3Discovery
	if own.code != http.StatusOK || json.Unmarshal(own.body.Bytes(), &list) != nil {
		next.ServeHTTP(w, req)
		return
	}
	for path, document := range t.documents(req.Context()) {
		list.Paths[path] = document
	}
	text, err := json.Marshal(list)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Etag", fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(text))))
	http.ServeContent(w, req, openAPIv3, time.Time{}, bytes.NewReader(text))
}

// documents are those that other servers have of their groups. One that does not answer has none.
func (t *table) documents(ctx context.Context) map[string]handler3.OpenAPIV3DiscoveryGroupVersion {
	ctx, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()
	all := map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, r := range t.ordered {
		asking.Go(func() {
			text, err := r.fetch(ctx, asker(), openAPIv3)
			var theirs handler3.OpenAPIV3Discovery
			if err != nil || json.Unmarshal(text, &theirs) != nil {
				return
			}
			path := strings.TrimPrefix(r.path, "/")
			if document, ok := theirs.Paths[path]; ok {
				mu.Lock()
				defer mu.Unlock()
				all[path] = document
			}
		})
	}
	asking.Wait()
	return all
}

// kept is an answer that stays here.
type kept struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(code int) { k.code = code }

// Write implements http.ResponseWriter.
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }
