// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/wherryproject/wherry/internal/connlimit"
)

// Options say what the chain of handlers bounds. Zero: no bound.
type Options struct {
	MaxWatchesPerUser, MaxSessionsPerUser, MaxSessionsPerNamespace int
	// of a watch whose client takes nothing
	StallTimeout time.Duration

	Codecs runtime.NegotiatedSerializer
	Await  func(http.Handler) http.Handler // has requests wait for what documents do not show yet
	Conns  *connlimit.Limiter              // nil: there is none
	Short  func() bool                     // tells that file descriptors run short; nil: never
	Page   func(http.Handler) http.Handler // takes the requests of the page out, and asks the chain; nil: there is none
}

// bodyGrace is what a slow body gets beyond the time of its request, so that the answer says what was too slow.
const bodyGrace = time.Second

// Chain is the library's chain of handlers, with limits on watches, sessions and logs' protocols inside of it and one
// on slow bodies around it.
func Chain(o Options) func(api http.Handler, c *genericapiserver.Config) http.Handler {
	return func(api http.Handler, c *genericapiserver.Config) http.Handler {
		limits := &watchLimits{limit: o.MaxWatchesPerUser, patience: o.StallTimeout, codecs: o.Codecs, open: tally{}}
		sessions := &sessionLimits{perUser: o.MaxSessionsPerUser, perNamespace: o.MaxSessionsPerNamespace,
			lasts: c.LongRunningFunc, codecs: o.Codecs, users: tally{}, namespaces: tally{}}
		api = withWholePatches(withLogProtocols(api, o.Codecs), o.Codecs, c.MaxRequestBodyBytes)
		api = withBoundedNumbers(api, o.Codecs, c.MaxRequestBodyBytes)
		inner := sessions.hold(limits.hold(sparing(api, o.Codecs, o.Short, c.LongRunningFunc)))
		chain := withBodyDeadline(genericapiserver.DefaultBuildHandlerChain(o.Await(inner), c), c)
		if o.Page != nil {
			chain = o.Page(chain)
		}
		if o.Conns == nil {
			return chain
		}
		return o.Conns.Handler(chain)
	}
}

// withBodyDeadline ends the reading of a request's body when the request's time is over. The library answers then, but
// net/http sends no answer before it has read what is left of a small body: a client that never sends it would hold its
// connection, and what serves it, for ever. What lasts as long as its client wants has no such time.
func withBodyDeadline(next http.Handler, c *genericapiserver.Config) http.Handler {
	resolver, lasts, patience := c.RequestInfoResolver, c.LongRunningFunc, c.RequestTimeout+bodyGrace
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Body != nil && req.Body != http.NoBody && !httpstream.IsUpgradeRequest(req) {
			if info, err := resolver.NewRequestInfo(req); err != nil || !lasts(req, info) {
				// net/http takes it off before the next request
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
			}
		}
		next.ServeHTTP(w, req)
	})
}
