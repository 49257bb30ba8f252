// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/quantities"
)

// withBoundedNumbers refuses what has a number such as 1e-10000000 in it, or one of a million digits. Where that is a
// quantity, to decode it takes the library (resource.ParseQuantity) seconds or minutes of a processor, and more than
// twice as long for each doubling, whoever asks and whether or not the object is then refused (RS-01). It is looked for
// before anything is decoded, in the first most bytes of a body, of which the library takes no more; what has texts and
// no quantities, ConfigMaps and Secrets, may have it.
func withBoundedNumbers(next http.Handler, codecs runtime.NegotiatedSerializer, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !bringsObject(req) {
			next.ServeHTTP(w, req)
			return
		}
		req, body, err := peek(req, most)
		if kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type")); err == nil {
			if why := quantities.Endless(body, kind); why != "" {
				responsewriters.ErrorNegotiated(apierrors.NewBadRequest(why), codecs, schema.GroupVersion{}, w, req)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

// bringsObject says whether a request's body is an object, or a patch of one, that may have quantities.
func bringsObject(req *http.Request) bool {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return false
	}
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok || !info.IsResourceRequest || req.Body == nil || req.Body == http.NoBody || req.Header.Get("Upgrade") != "" {
		return false
	}
	switch info.Subresource {
	case "proxy", "exec", "attach", "portforward": // what goes through is a program's
		return false
	}
	return info.APIGroup != "" || info.Resource != "configmaps" && info.Resource != "secrets"
}
