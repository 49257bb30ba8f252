// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// watchLimits bounds how many watches a user has open, and ends those whose client takes nothing: each holds a
// goroutine, a stream of etcd and buffers for hours, and no other limit of the server counts it.
type watchLimits struct {
	limit    int           // 0: none
	patience time.Duration // 0: endless
	codecs   runtime.NegotiatedSerializer

	mu   sync.Mutex
	open tally // by user
}

func (c *watchLimits) hold(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || !info.IsResourceRequest || info.Verb != "watch" {
			next.ServeHTTP(w, req)
			return
		}
		if c.patience > 0 {
			w = responsewriter.WrapForHTTP1Or2(&impatient{ResponseWriter: w, control: http.NewResponseController(w),
				patience: c.patience})
		}
		who, known := request.UserFrom(req.Context())
		if !known || c.limit == 0 || unlimited(who) {
			next.ServeHTTP(w, req)
			return
		}
		name := who.GetName()
		if !c.enter(name) {
			err := apierrors.NewTooManyRequests(fmt.Sprintf("user %q has %d open watches, the maximum: close some, or watch more with each",
				name, c.limit), 10)
			responsewriters.ErrorNegotiated(err, c.codecs, schema.GroupVersion{Group: info.APIGroup,
				Version: info.APIVersion}, w, req)
			return
		}
		defer c.leave(name)
		next.ServeHTTP(w, req)
	})
}

// unlimited selects users whose watches are the server's own or a node's: a node watches for each of its pods.
func unlimited(who user.Info) bool {
	groups := who.GetGroups()
	return slices.Contains(groups, user.SystemPrivilegedGroup) || slices.Contains(groups, user.NodesGroup)
}

func (c *watchLimits) enter(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.full(name, c.limit) {
		return false
	}
	c.open.add(name)
	return true
}

func (c *watchLimits) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open.remove(name)
}

// impatient is an answer that fails when its client has taken nothing of it for a time. It waits for clients, not for
// events: outside of a write there is no deadline, because one that passes ends an HTTP/2 stream even while nothing is
// being written.
type impatient struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

var (
	_ responsewriter.UserProvidedDecorator = &impatient{}
	_ http.Flusher                         = &impatient{}
)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (i *impatient) Unwrap() http.ResponseWriter { return i.ResponseWriter }

// Write implements http.ResponseWriter. A small piece is only put into a buffer, which Flush sends.
func (i *impatient) Write(p []byte) (int, error) {
	i.begin()
	defer i.done()
	return i.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (i *impatient) Flush() {
	i.begin()
	defer i.done()
	_ = i.control.Flush() // the next write tells
}

// begin sets a deadline to what is being written; where there is none, nobody can be cut off.
func (i *impatient) begin() { _ = i.control.SetWriteDeadline(time.Now().Add(i.patience)) }

// done leaves the connection as it was.
func (i *impatient) done() { _ = i.control.SetWriteDeadline(time.Time{}) }
