// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strings"
	"testing"
)

// page is a request as the page itself makes it.
func page(change func(*Request)) Request {
	r := Request{Method: "GET", Path: "/ui/k8s/api/v1/pods", Host: "127.0.0.1:8001", FetchSite: "same-origin",
		FetchMode: "cors", FetchDest: "empty"}
	change(&r)
	return r
}

// UI-03: which requests are the page's own.
func TestJudge(t *testing.T) {
	loopback, server := Served{}, Served{Names: []string{"box.example.org", "*.apps.example.org"}, AnyIP: true,
		SignOn: true}
	for name, row := range map[string]struct {
		served Served
		change func(*Request)
		code   int // 0: it may pass
		says   string
	}{
		"a list":                 {loopback, func(*Request) {}, 0, ""},
		"by a tool":              {loopback, func(r *Request) { r.FetchSite, r.FetchMode, r.FetchDest = "", "", "" }, 0, ""},
		"typed":                  {loopback, func(r *Request) { r.FetchSite, r.FetchMode, r.FetchDest = "none", "navigate", "document" }, 0, ""},
		"a change":               {loopback, func(r *Request) { r.Method, r.PageHeader, r.Origin = "DELETE", "1", "http://127.0.0.1:8001" }, 0, ""},
		"a change, tool":         {loopback, func(r *Request) { r.Method, r.PageHeader, r.FetchSite = "PATCH", "1", "" }, 0, ""},
		"without the header":     {loopback, func(r *Request) { r.Method = "POST" }, Forbidden, "X-Wherry-Page: 1"},
		"with another":           {loopback, func(r *Request) { r.Method, r.PageHeader = "POST", "1, 1" }, Forbidden, "X-Wherry-Page: 1"},
		"an unknown method":      {loopback, func(r *Request) { r.Method = "BREW" }, Forbidden, "X-Wherry-Page: 1"},
		"another site":           {loopback, func(r *Request) { r.FetchSite = "cross-site" }, Forbidden, "another page (Sec-Fetch-Site: cross-site)"},
		"another port":           {loopback, func(r *Request) { r.FetchSite = "same-site" }, Forbidden, "another page"},
		"another word":           {loopback, func(r *Request) { r.FetchSite = "same-origin, cross-site" }, Forbidden, "another page"},
		"another origin":         {loopback, func(r *Request) { r.Origin = "http://evil.example" }, Forbidden, "Origin: http://evil.example"},
		"no origin of its own":   {loopback, func(r *Request) { r.Origin = "null" }, Forbidden, "Origin: null"},
		"origin, another port":   {loopback, func(r *Request) { r.Origin = "http://127.0.0.1:8002" }, Forbidden, "Origin"},
		"origin, another scheme": {loopback, func(r *Request) { r.Origin = "https://127.0.0.1:8001" }, Forbidden, "Origin"},
		"origin with a name":     {loopback, func(r *Request) { r.Origin = "http://127.0.0.1:8001@evil.example" }, Forbidden, "Origin"},
		"two origins":            {loopback, func(r *Request) { r.Origin = "http://127.0.0.1:8001, http://evil.example" }, Forbidden, "Origin"},
		"a default port":         {loopback, func(r *Request) { r.Host, r.Origin = "localhost", "http://localhost" }, 0, ""},
		"a tunnel's port":        {loopback, func(r *Request) { r.Host, r.Origin = "localhost:9", "http://localhost:9" }, 0, ""},
		"IPv6":                   {loopback, func(r *Request) { r.Host, r.Origin = "[::1]:8001", "http://[::1]:8001" }, 0, ""},
		"a name pointed here":    {loopback, func(r *Request) { r.Host = "rebound.example:8001" }, Misdirected, `not served as "rebound.example:8001"`},
		"one like loopback":      {loopback, func(r *Request) { r.Host = "127.0.0.1.evil.example" }, Misdirected, "not served"},
		"no host":                {loopback, func(r *Request) { r.Host = "" }, Misdirected, "not served"},
		"an address elsewhere":   {loopback, func(r *Request) { r.Host = "192.0.2.1:8001" }, Misdirected, "not served"},
		"a script":               {loopback, func(r *Request) { r.FetchDest = "script" }, Forbidden, "cannot be used as script"},
		"a frame":                {loopback, func(r *Request) { r.FetchDest = "iframe" }, Forbidden, "cannot be used as iframe"},
		"a worker":               {loopback, func(r *Request) { r.FetchDest = "serviceworker" }, Forbidden, "cannot be used"},
		"a shell":                {loopback, func(r *Request) { r.Upgrade, r.FetchDest, r.Origin = "websocket", "websocket", "http://127.0.0.1:8001" }, 0, ""},
		"a shell without origin": {loopback, func(r *Request) { r.Upgrade = "websocket" }, Forbidden, "by its header Origin"},
		"a shell of another":     {loopback, func(r *Request) { r.Upgrade, r.Origin = "websocket", "http://evil.example" }, Forbidden, "another page"},
		"SPDY":                   {loopback, func(r *Request) { r.Upgrade, r.Origin = "SPDY/3.1", "http://127.0.0.1:8001" }, BadRequest, "are WebSockets"},
		"a socket elsewhere":     {loopback, func(r *Request) { r.Path, r.Upgrade = "/ui/session", "websocket" }, BadRequest, "are WebSockets"},
		"a link in a letter": {loopback, func(r *Request) {
			r.Path, r.FetchSite, r.FetchMode, r.FetchDest = "/ui/sign-in", "cross-site", "navigate", "document"
		}, 0, ""},
		"a link to the API": {loopback, func(r *Request) {
			r.FetchSite, r.FetchMode, r.FetchDest = "cross-site", "navigate", "document"
		}, Forbidden, "another page"},
		"the page in a frame": {loopback, func(r *Request) {
			r.Path, r.FetchSite, r.FetchMode, r.FetchDest = "/ui/", "cross-site", "navigate", "iframe"
		}, Forbidden, "another page"},
		"the session read elsewhere": {loopback, func(r *Request) { r.Path, r.FetchSite = "/ui/session", "same-site" }, Forbidden, "another page"},
		"a file":                     {loopback, func(r *Request) { r.Path, r.FetchDest = "/ui/assets/a.js", "script" }, 0, ""},
		"a file elsewhere":           {loopback, func(r *Request) { r.Path, r.FetchSite = "/ui/assets/a.js", "cross-site" }, Forbidden, "another page"},
		"back from the provider": {server, func(r *Request) {
			r.Path, r.FetchSite, r.FetchMode, r.FetchDest = "/ui/oidc/callback", "cross-site", "navigate", "document"
		}, 0, ""},
		"back from it in a frame": {server, func(r *Request) {
			r.Path, r.FetchSite, r.FetchMode, r.FetchDest = "/ui/oidc/callback", "cross-site", "navigate", "iframe"
		}, Forbidden, "another page"},
		"to the provider": {server, func(r *Request) {
			r.Path, r.FetchMode, r.FetchDest = "/ui/oidc/start", "navigate", "document"
		}, 0, ""},
		"to the provider, led by another page": {server, func(r *Request) {
			r.Path, r.FetchSite, r.FetchMode, r.FetchDest = "/ui/oidc/start", "cross-site", "navigate", "document"
		}, Forbidden, "another page"},
		"a form back from the provider": {server, func(r *Request) { r.Method, r.Path, r.PageHeader = "POST", "/ui/oidc/callback", "1" }, MethodNotAllowed, "takes GET"},
		"why":                           {loopback, func(r *Request) { r.Path = "/ui/why" }, 0, ""},
		"why, as a script":              {loopback, func(r *Request) { r.Path, r.FetchDest = "/ui/why", "script" }, Forbidden, "cannot be used as script"},
		"why, elsewhere":                {loopback, func(r *Request) { r.Path, r.FetchSite = "/ui/why", "cross-site" }, Forbidden, "another page"},
		"why, changed":                  {loopback, func(r *Request) { r.Method, r.Path, r.PageHeader = "POST", "/ui/why", "1" }, MethodNotAllowed, "takes GET, HEAD"},
		"HEAD of a link":                {loopback, func(r *Request) { r.Method, r.Path = "HEAD", "/ui/sign-in" }, MethodNotAllowed, "takes GET, not HEAD"},
		"POST of a view":                {loopback, func(r *Request) { r.Method, r.Path, r.PageHeader = "POST", "/ui/pods", "1" }, MethodNotAllowed, "takes GET, HEAD"},
		"a token where links are":       {loopback, func(r *Request) { r.Method, r.Path, r.PageHeader = "POST", "/ui/session", "1" }, MethodNotAllowed, "DELETE, not POST"},
		"a token":                       {server, func(r *Request) { r.Method, r.Path, r.PageHeader = "POST", "/ui/session", "1" }, 0, ""},
		"a token of another page":       {server, func(r *Request) { r.Method, r.Path = "POST", "/ui/session" }, Forbidden, "X-Wherry-Page"},
		"not a path of the page":        {loopback, func(r *Request) { r.Path = "/api/v1/pods" }, NotFound, "those begin with /ui/"},
		"the server's name": {server, func(r *Request) {
			r.Host, r.TLS, r.Origin = "BOX.example.org:6443", true, "https://box.example.org:6443"
		}, 0, ""},
		"a name below":       {server, func(r *Request) { r.Host = "a.apps.example.org" }, 0, ""},
		"two levels below":   {server, func(r *Request) { r.Host = "b.a.apps.example.org" }, Misdirected, "not served"},
		"nothing below":      {server, func(r *Request) { r.Host = ".apps.example.org" }, Misdirected, "not served"},
		"the server, by IP":  {server, func(r *Request) { r.Host = "192.0.2.1:6443" }, 0, ""},
		"the server, by IP6": {server, func(r *Request) { r.Host = "[2001:db8::1]:6443" }, 0, ""},
		"an odd IP6":         {server, func(r *Request) { r.Host = "2001:db8::1" }, Misdirected, "not served"},
	} {
		refusal := row.served.Judge(page(row.change))
		switch {
		case row.code == 0 && refusal != nil:
			t.Errorf("%s: refused: %v", name, refusal)
		case row.code != 0 && (refusal == nil || refusal.Code != row.code || !strings.Contains(refusal.Message, row.says)):
			t.Errorf("%s: %v, want %d %q", name, refusal, row.code, row.says)
		}
	}
}

// UI-04: what pods and services serve does not become the page's own origin.
func TestUpstreamPath(t *testing.T) {
	for path, want := range map[string]string{
		"/ui/k8s":  "/",
		"/ui/k8s/": "/",
		"/ui/k8s/api/v1/namespaces/shop/pods/web/log":        "/api/v1/namespaces/shop/pods/web/log",
		"/ui/k8s/api/v1/nodes/vm/proxy/stats/summary":        "/api/v1/nodes/vm/proxy/stats/summary",
		"/ui/k8s/api/v1/namespaces/proxy/pods/proxy":         "/api/v1/namespaces/proxy/pods/proxy",
		"/ui/k8s/apis/apps/v1/deployments":                   "/apis/apps/v1/deployments",
		"/ui/k8s/api/v1/namespaces/shop/pods/web/proxy":      "403",
		"/ui/k8s/api/v1/namespaces/shop/pods/web:80/proxy/x": "403",
		"/ui/k8s//api/v1/namespaces/shop//pods/web/proxy/x":  "403",
		"/ui/k8s/api/v1/namespaces/shop/services/web/proxy/": "403",
		"/ui/k8s/api/v1/nodes/vm:80/proxy/":                  "403",
		"/ui/k8s/api/v1/proxy/namespaces/shop/pods/web":      "403",
		"/ui/k8s/../x":     "400",
		"/ui/k8s/api/./v1": "400",
		"/ui/k8sx/api":     "404",
		"/ui/":             "404",
	} {
		got, refusal := UpstreamPath(path)
		if refusal != nil {
			got = map[int]string{400: "400", 403: "403", 404: "404"}[refusal.Code]
		}
		if got != want {
			t.Errorf("%s: %s (%v), want %s", path, got, refusal, want)
		}
	}
}

// UI-01 UI-03: whatever a client writes, the answer is a decision, and what goes on to the API is a path below /.
func FuzzJudge(f *testing.F) {
	f.Add("GET", "/ui/k8s/api/v1/pods", "127.0.0.1:8001", "http://127.0.0.1:8001", "same-origin", "websocket")
	f.Add("POST", "/ui/session", "[::1]", "null", "cross-site", "")
	f.Add("GET", "/ui/k8s/../..", "x:y:z", "http://[::1", "", "SPDY/3.1")
	f.Fuzz(func(t *testing.T, method, path, host, origin, site, upgrade string) {
		r := Request{Method: method, Path: path, Host: host, Origin: origin, FetchSite: site, Upgrade: upgrade}
		if (Served{}).Judge(r) == nil {
			if !reads(method) || origin == "" && upgrade != "" || Route(path) == "" {
				t.Fatalf("%+v passed", r)
			}
			if name, _ := split(host, ""); name != "localhost" && !strings.HasPrefix(name, "127.") &&
				!strings.HasPrefix(name, "[") {
				t.Fatalf("%+v passed by its host", r)
			}
		}
		to, refusal := UpstreamPath(path)
		if refusal == nil && (!strings.HasPrefix(to, "/") || strings.Contains(to+"/", "/../")) {
			t.Fatalf("%q leads to %q", path, to)
		}
	})
}
