// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/wherryproject/wherry/internal/ui/gate"
)

// api passes a request on to the Kubernetes API, as the one who has signed in.
func (p *Page) api(w http.ResponseWriter, r *http.Request) {
	ownOfData(w.Header())
	who, token, done := p.signedIn(w, r)
	defer done()
	if who == nil {
		return
	}
	to, refusal := upstreamURL(r.URL)
	if refusal != nil {
		writeStatus(w, refusal.Code, refusal.Message)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(who.ended, cancel)() // whoever signs out leaves no stream behind
	ctx = context.WithValue(ctx, endKey{}, who.ended)
	p.o.API.ServeHTTP(w, p.onBehalf(r.WithContext(ctx), token, to))
}

// signedIn is the session of a request, until done is called, and the token by which it asks; without one it refuses
// the request and returns nil.
func (p *Page) signedIn(w http.ResponseWriter, r *http.Request) (who *session, token string, done func()) {
	who, done = p.sessions.begin(p.secret(r))
	if who == nil {
		writeStatus(w, http.StatusUnauthorized, "nobody is signed in: "+p.howToSignIn())
		return nil, "", done
	}
	token, refusal := p.bearer(r.Context(), who)
	if refusal != nil {
		writeStatus(w, refusal.Code, refusal.Message)
		return nil, "", done
	}
	return who, token, done
}

// endKey is the key of a session's end in the context of a request.
type endKey struct{}

// endOf is done when the session has ended that a request is made in.
func endOf(ctx context.Context) context.Context {
	if ended, ok := ctx.Value(endKey{}).(context.Context); ok {
		return ended
	}
	return context.Background()
}

// upstreamURL is what a URL of the page means to the API.
func upstreamURL(from *url.URL) (*url.URL, *gate.Refusal) {
	path, refusal := gate.UpstreamPath(from.Path)
	if refusal != nil {
		return nil, refusal
	}
	to := &url.URL{Path: path, RawQuery: from.RawQuery}
	if from.RawPath != "" { // it is escaped otherwise than Go would
		raw, ok := strings.CutPrefix(from.RawPath, strings.TrimSuffix(from.Path, strings.TrimPrefix(path, "/")))
		if !ok {
			return nil, &gate.Refusal{Code: gate.BadRequest, Message: "the path " + from.RawPath +
				" escapes what needs no escaping: write " + gate.Prefix + "k8s/ as it is"}
		}
		to.RawPath = "/" + raw
	}
	return to, nil
}

// onBehalf is a browser's request as it goes on to the API: of all that says who asks there is the token alone.
func (p *Page) onBehalf(r *http.Request, token string, to *url.URL) *http.Request {
	out := r.Clone(r.Context())
	out.URL, out.RequestURI = to, to.RequestURI()
	out.Header = asked(r.Header)
	// not the browser's: for one the API breaks what it answers into indented lines, half as long again
	out.Header.Set("User-Agent", "wherry-ui/"+p.o.Version)
	if out.Header.Get("Upgrade") != "" { // a watch by WebSocket is refused without one; whose it is was judged here
		out.Header.Set("Origin", "https://"+r.Host)
	}
	if token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	if r.TLS != nil { // a certificate that the browser has shown is not the session's
		state := *r.TLS
		state.PeerCertificates, state.VerifiedChains = nil, nil
		out.TLS = &state
	}
	return out
}
