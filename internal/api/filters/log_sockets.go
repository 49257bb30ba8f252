// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// withLogProtocols refuses requests for logs over WebSocket protocols that logs do not have. The library refuses them
// too, but its handler waits for ever then, with the node's side of the log in its hands.
func withLogProtocols(next http.Handler, codecs runtime.NegotiatedSerializer) http.Handler {
	known := wsstream.NewDefaultReaderProtocols()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || info.Resource != "pods" || info.Subresource != "log" || !wsstream.IsWebSocketRequest(req) {
			next.ServeHTTP(w, req)
			return
		}
		wanted := strings.FieldsFunc(strings.Join(req.Header.Values(wsstream.WebSocketProtocolHeader), ","),
			func(r rune) bool { return r == ',' || r == ' ' })
		if len(wanted) == 0 || slices.ContainsFunc(wanted, func(p string) bool { _, ok := known[p]; return ok }) {
			next.ServeHTTP(w, req)
			return
		}
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(p string) bool { return p == "" })
		err := apierrors.NewBadRequest(fmt.Sprintf("logs are not served over the WebSocket protocol %s: request %s, or none",
			strings.Join(wanted, ", "), strings.Join(names, " or ")))
		responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{Group: info.APIGroup,
			Version: info.APIVersion}, w, req)
	})
}
