// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/connlimit"
)

// CountUsers reports to the limiter of the port which user each connection belongs to. Nil: there is none.
func CountUsers(d *connlimit.Limiter, inner authenticator.Request) authenticator.Request {
	if d == nil {
		return inner
	}
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		resp, ok, err := inner.AuthenticateRequest(req)
		if ok && err == nil && resp.User.GetName() != user.Anonymous {
			d.Authenticated(req, resp.User.GetName())
		}
		return resp, ok, err
	})
}

// sparing refuses what holds descriptors for as long as its client wants while they are short: sessions in containers,
// logs that are followed, proxied connections. Without this those who have sessions could take what the store needs.
// Watches hold none.
func sparing(next http.Handler, codecs runtime.NegotiatedSerializer, short func() bool,
	lasts request.LongRunningRequestCheck) http.Handler {
	if short == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || !lasts(req, info) || info.Verb == "watch" || !short() {
			next.ServeHTTP(w, req)
			return
		}
		err := apierrors.NewTooManyRequests("the server has hardly any file descriptors left: end some sessions, "+
			"or start it with a higher limit of open files (ulimit -n, LimitNOFILE)", 10)
		responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{Group: info.APIGroup,
			Version: info.APIVersion}, w, req)
	})
}
