// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// openAPIv3 is where the documents of OpenAPI v3 are, one for each group and version.
const openAPIv3 = "/openapi/v3"

// openAPIv2 is where the one document of OpenAPI v2 is.
const openAPIv2 = "/openapi/v2"

// Handler has others answer for their groups, and next for everything else. It stands behind authentication,
// authorisation and the limits on requests.
func (a *Aggregator) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		t := a.routes.Load()
		if t == nil || len(t.ordered) == 0 {
			next.ServeHTTP(w, req)
			return
		}
		path := req.URL.Path
		if document, ok := strings.CutPrefix(path, openAPIv3); ok && (document == "" || document[0] == '/') {
			a.document(t, document, next, w, req)
			return
		}
		if path == openAPIv2 {
			a.wholeDocument(next, w, req)
			return
		}
		switch r, described := t.at(path); {
		case r != nil:
			r.ServeHTTP(w, req)
		case described != nil:
			writeGroup(a, described, w, req)
		default:
			next.ServeHTTP(w, req)
		}
	})
}

func writeGroup(a *Aggregator, group *metav1.APIGroup, w http.ResponseWriter, req *http.Request) {
	responsewriters.WriteObjectNegotiated(a.o.Schemes.Codecs, negotiation.DefaultEndpointRestrictions,
		schema.GroupVersion{}, w, req, http.StatusOK, group.DeepCopy(), false)
}
