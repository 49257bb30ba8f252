// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"context"
	"net/http"
	"sync"

	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// wholeDocument answers for OpenAPI v2, which is one document of all groups: this server's with what others have of
// theirs. As those of v3, they are read at each request and kept nowhere; clients of today ask for v3.
func (a *Aggregator) wholeDocument(t *table, next http.Handler, w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		next.ServeHTTP(w, req)
		return
	}
	theirs := t.wholeDocuments(req.Context())
	if len(theirs) == 0 {
		next.ServeHTTP(w, req)
		return
	}
	merged, ok := wholeOwn(next, req)
	if !ok {
		next.ServeHTTP(w, req)
		return
	}
	for _, doc := range theirs {
		if err := aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(merged, doc); err != nil {
			a.o.Log.Warn("the OpenAPI v2 document of another API server is left out", "err", err)
		}
	}
	var serve answering
	handler.NewOpenAPIService(merged).RegisterOpenAPIVersionedService(openAPIv2, &serve)
	serve.ServeHTTP(w, req)
}

// wholeOwn is this server's own document, anew for each who asks: what is merged into it changes it.
func wholeOwn(next http.Handler, req *http.Request) (*spec.Swagger, bool) {
	whole := req.Clone(req.Context())
	whole.Method = http.MethodGet
	whole.Header = http.Header{"Accept": {"application/json"}} // no conditions, no compression
	own := &kept{header: http.Header{}, code: http.StatusOK}
	next.ServeHTTP(own, whole)
	doc := &spec.Swagger{}
	if own.code != http.StatusOK || doc.UnmarshalJSON(own.body.Bytes()) != nil {
		return nil, false
	}
	return doc, true
}

// wholeDocuments are what other servers have of the groups that are theirs, in the order of the groups. One that does
// not answer has none.
func (t *table) wholeDocuments(ctx context.Context) (out []*spec.Swagger) {
	ctx, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()
	found := make([]*spec.Swagger, len(t.ordered))
	var asking sync.WaitGroup
	for i, r := range t.ordered {
		asking.Go(func() {
			text, err := r.fetch(ctx, asker(), openAPIv2)
			doc := &spec.Swagger{}
			if err != nil || doc.UnmarshalJSON(text) != nil {
				return
			}
			// With the definitions that these paths need, and no others.
			found[i] = aggregator.FilterSpecByPathsWithoutSideEffects(doc, []string{r.path + "/"})
		})
	}
	asking.Wait()
	for _, doc := range found {
		if doc != nil && doc.Paths != nil && len(doc.Paths.Paths) > 0 {
			out = append(out, doc)
		}
	}
	return out
}

// answering is the handler that was given for a path.
type answering struct{ http.Handler }

// Handle implements common.PathHandler.
func (a *answering) Handle(_ string, h http.Handler) { a.Handler = h }
