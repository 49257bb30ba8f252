// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/ui/gate"
	"github.com/wherryproject/wherry/internal/ui/oidc"
)

// SignIn is how people sign in.
type SignIn string

const (
	// ByLink is by a link that works once. The API is asked with credentials of its own, which are the reader's.
	ByLink SignIn = "link"
	// ByToken is by a bearer token of the API.
	ByToken SignIn = "token"
)

// Command says how a command reaches the API that the page shows, for the commands that the page names.
type Command struct {
	Kubeconfig string `json:"kubeconfig"` // "": where kubectl looks without being told
	Context    string `json:"context"`
}

// Options say what page is wanted.
type Options struct {
	API    http.Handler // of [Remote] or [Within]
	SignIn SignIn
	// Names are those by which the page is served, beside localhost; AnyIP: at addresses other than loopback too.
	Names []string
	AnyIP bool
	// Provider is where people may sign in beside, if it is by tokens; nil: nowhere.
	Provider *oidc.Provider
	HSTS     []string // directives of Strict-Transport-Security, for answers over TLS
	// Port tells the cookies of several pages on one machine apart: browsers do not.
	Port int

	Command   Command
	Namespace string // that the page shows first; "": all
	Version   string

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: nothing is logged
}

// Page serves the page. It is an http.Handler.
type Page struct {
	o        Options
	served   gate.Served
	sessions *sessions
	links    *links
	files    *files
	sealer   *sealer
	checks   chan struct{} // has room for the tokens that are being checked
	asks     chan struct{} // has room for those who are on their way to or from the identity provider
}

// mostChecks is how many tokens are checked at a time: each is a request to the API, on behalf of whoever asks. As many
// may be on their way to or from an identity provider: one that does not answer keeps out nobody who has a token.
const mostChecks = 8

// bodyTime is how long the body of a request may take, which is a token or an answer's worth of an object.
const bodyTime = time.Minute

// New makes a page.
func New(o Options) *Page {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Page{
		o:        o,
		served:   gate.Served{Names: o.Names, AnyIP: o.AnyIP, SignOn: o.SignIn == ByToken},
		sessions: newSessions(o.Now),
		links:    &links{now: o.Now},
		files:    newFiles(built()),
		sealer:   newSealer(),
		checks:   make(chan struct{}, mostChecks),
		asks:     make(chan struct{}, mostChecks),
	}
	p.sessions.gone = p.gone
	return p
}

// Link returns the path, with its query, of a new link that signs in once, within five minutes.
func (p *Page) Link() string {
	return gate.Prefix + "sign-in?" + url.Values{"once": {p.links.add()}}.Encode()
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own(w.Header())
	if r.TLS != nil && len(p.o.HSTS) > 0 {
		w.Header().Set("Strict-Transport-Security", strings.Join(p.o.HSTS, "; "))
	}
	if r.ContentLength != 0 && r.Header.Get("Upgrade") == "" { // else a body that never comes would hold a connection
		// the API's own chain sets another one
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	}
	if r.URL.Path+"/" == gate.Prefix {
		http.Redirect(w, r, gate.Prefix, http.StatusFound)
		return
	}
	if refusal := p.served.Judge(known(r)); refusal != nil {
		p.refuse(w, r, refusal)
		return
	}
	switch gate.Route(r.URL.Path) {
	case gate.SignIn:
		p.signIn(w, r)
	case gate.Session:
		p.session(w, r)
	case gate.API:
		p.api(w, r)
	case gate.Why:
		p.why(w, r)
	case gate.Leave:
		p.leave(w, r)
	case gate.Return:
		p.comeBack(w, r)
	default:
		p.files.ServeHTTP(w, r)
	}
}

// known is what the gate decides by.
func known(r *http.Request) gate.Request {
	all := func(name string) string { return strings.Join(r.Header.Values(name), ", ") }
	return gate.Request{Method: r.Method, Path: r.URL.Path, Host: r.Host, TLS: r.TLS != nil,
		Origin: all("Origin"), FetchSite: all("Sec-Fetch-Site"), FetchMode: all("Sec-Fetch-Mode"),
		FetchDest: all("Sec-Fetch-Dest"), PageHeader: all("X-Wherry-Page"), Upgrade: all("Upgrade")}
}

// refuse says why a request may not pass: to a program as the Kubernetes API would, to a person in words alone.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, refusal *gate.Refusal) {
	switch gate.Route(r.URL.Path) {
	case gate.API, gate.Session, gate.Why:
		writeStatus(w, refusal.Code, refusal.Message)
	default:
		writeText(w, refusal.Code, refusal.Message)
	}
}
