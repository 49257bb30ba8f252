// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Statuses of refusals, as HTTP has them.
const (
	BadRequest       = 400
	Forbidden        = 403
	NotFound         = 404
	MethodNotAllowed = 405
	Misdirected      = 421
)

// Refusal is why a request may not pass.
type Refusal struct {
	Code    int
	Message string
}

func refuse(code int, format string, args ...any) *Refusal {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// Request is what is known of a request. A header that came more than once has all its values, with commas between
// them, and so means nothing here.
type Request struct {
	Method string
	Path   string // percent-decoded
	Host   string
	TLS    bool

	Origin     string
	FetchSite  string // Sec-Fetch-Site
	FetchMode  string // Sec-Fetch-Mode
	FetchDest  string // Sec-Fetch-Dest
	PageHeader string // X-Wherry-Page

	Upgrade string // the protocol that the client wants to change to; "": none
}

// Served is where the page is served.
type Served struct {
	// Names by which clients may ask for it, in lower case; *.example.org means those one level below.
	Names []string
	// AnyIP: by every IP address too, not only those of loopback. No other page can be at an address that leads
	// here: names can be pointed elsewhere, addresses cannot.
	AnyIP bool
	// SignOn: a session is made by POST, from a bearer token.
	SignOn bool
}

// Judge returns why a request may not pass; nil: it may.
func (s Served) Judge(r Request) *Refusal {
	part := Route(r.Path)
	if part == "" {
		return refuse(NotFound, "%s is not a path of the page: those begin with %s", r.Path, Prefix)
	}
	if !s.at(r.Host) {
		return refuse(Misdirected, "the page is not served as %q: use an address that wherry has printed", r.Host)
	}
	if methods := s.methods(part); !slices.Contains(methods, r.Method) && part != API {
		return refuse(MethodNotAllowed, "%s takes %s, not %s", r.Path, strings.Join(methods, ", "), r.Method)
	}
	if r.Upgrade != "" && (part != API || r.Method != "GET" || !strings.EqualFold(r.Upgrade, "websocket")) {
		return refuse(BadRequest, "the page's streams are WebSockets; %q at %s is not one", r.Upgrade, r.Path)
	}
	if refusal := fromElsewhere(part, r); refusal != nil {
		return refusal
	}
	switch {
	case r.Upgrade != "" && r.Origin == "":
		return refuse(Forbidden, "a WebSocket must say that it is the page's, by its header Origin")
	case !reads(r.Method) && r.PageHeader != "1":
		return refuse(Forbidden,
			"a request that changes something must be the page's own, which has the header X-Wherry-Page: 1")
	}
	return nil
}

// methods are those of a part; the Kubernetes API judges its own.
func (s Served) methods(p Part) []string {
	switch {
	case p == SignIn || p == Leave || p == Return:
		return []string{"GET"}
	case p == Session && s.SignOn:
		return []string{"GET", "HEAD", "POST", "DELETE"}
	case p == Session:
		return []string{"GET", "HEAD", "DELETE"}
	}
	return []string{"GET", "HEAD"}
}

func reads(method string) bool { return method == "GET" || method == "HEAD" }

// fromElsewhere refuses what another page has a browser send, or what a browser is to use as anything but data.
func fromElsewhere(part Part, r Request) *Refusal {
	// A link in a letter or another page may lead here: what a browser shows then is the page itself. An identity
	// provider sends people back.
	followed := reads(r.Method) && r.FetchMode == "navigate" && r.FetchDest == "document" &&
		(part == Document || part == SignIn || part == Return)
	switch r.FetchSite {
	case "", "same-origin", "none":
	default:
		if !followed {
			return refuse(Forbidden, "the request comes from another page (Sec-Fetch-Site: %s)", r.FetchSite)
		}
	}
	if r.Origin != "" && !sameOrigin(r) {
		return refuse(Forbidden, "the request comes from another page (Origin: %s)", r.Origin)
	}
	data := part == API || part == Why
	if data && !slices.Contains([]string{"", "empty", "websocket", "document"}, r.FetchDest) {
		return refuse(Forbidden, "what the Kubernetes API answers is data, and cannot be used as %s", r.FetchDest)
	}
	return nil
}

// sameOrigin reports whether a request's Origin is the one that it asks.
func sameOrigin(r Request) bool {
	scheme := "http"
	if r.TLS {
		scheme = "https"
	}
	u, err := url.Parse(r.Origin)
	if err != nil || u.Scheme != scheme || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	name, port := split(u.Host, scheme)
	toName, toPort := split(r.Host, scheme)
	return name != "" && name == toName && port == toPort
}

// split takes a host apart, into a name in lower case and a port.
func split(host, scheme string) (name, port string) {
	port = map[string]string{"http": "80", "https": "443"}[scheme]
	name = host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
	}
	return strings.ToLower(name), port
}

// at reports whether the page is served as a host. The port does not matter: a tunnel may have another one.
func (s Served) at(host string) bool {
	name, _ := split(host, "")
	bare := strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if ip, err := netip.ParseAddr(bare); err == nil {
		bracketed := bare != name
		return ip.Zone() == "" && bracketed == ip.Is6() && (s.AnyIP || ip.Unmap().IsLoopback())
	}
	if name == "localhost" {
		return true
	}
	return name != "" && slices.ContainsFunc(s.Names, func(known string) bool {
		if below, ok := strings.CutPrefix(known, "*."); ok {
			_, domain, _ := strings.Cut(name, ".")
			return domain == below && !strings.HasPrefix(name, ".")
		}
		return name == known
	})
}
