// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policy is what the page may do in a browser: only what was built with it, and ask where it came from. Terminals
// (xterm.js) would put their colours and sizes into style elements of their own: the page's build has them use style
// sheets in memory instead (ui/vite.config.ts), so that not even styles need be inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// dataPolicy is for what the API answers, which is never a page, whatever it says of itself.
const dataPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

// own sets the headers that every answer has.
func own(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// ownOfData sets those of an answer of the API. A browser that goes there saves it.
func ownOfData(h http.Header) {
	own(h)
	h.Set("Content-Security-Policy", dataPolicy)
	h.Set("Content-Disposition", "attachment")
}

// asked are the headers of a request that go on to the API: what it is about, and nothing that says who asks.
func asked(from http.Header) http.Header {
	to := http.Header{}
	for _, name := range []string{"Accept", "Accept-Encoding", "Content-Type", "Content-Encoding", "If-Match",
		"If-None-Match", "If-Modified-Since", "Range", "Connection", "Upgrade", "Sec-Websocket-Key",
		"Sec-Websocket-Version", "Sec-Websocket-Extensions"} {
		if values := from.Values(name); len(values) > 0 {
			to[http.CanonicalHeaderKey(name)] = values
		}
	}
	var protocols []string
	for one := range strings.SplitSeq(strings.Join(from.Values("Sec-Websocket-Protocol"), ","), ",") {
		// one of them is a bearer token, where a browser cannot set headers
		if one = strings.TrimSpace(one); one != "" && !strings.Contains(strings.ToLower(one), "bearer.authorization") {
			protocols = append(protocols, one)
		}
	}
	if len(protocols) > 0 {
		to.Set("Sec-Websocket-Protocol", strings.Join(protocols, ", "))
	}
	return to
}

// answered takes from the headers of an answer all that are not about what it says. Cookies, rules for the page's
// origin, and questions for a password are not for an API to make, nor for a pod whose words it passes on.
func answered(h http.Header) {
	for name := range h {
		switch name {
		case "Content-Type", "Content-Length", "Content-Encoding", "Content-Range", "Accept-Ranges", "Date", "Etag",
			"Last-Modified", "Vary", "Warning", "Audit-Id", "Retry-After", "Connection", "Upgrade", "Transfer-Encoding",
			"Trailer", "Sec-Websocket-Accept", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions", "Wherry-Note":
		default:
			if !strings.HasPrefix(name, "X-Kubernetes-Pf-") {
				h.Del(name)
			}
		}
	}
}

// writeStatus answers as the Kubernetes API does when it does not do what it was asked.
func writeStatus(w http.ResponseWriter, code int, message string) {
	reasons := map[int]metav1.StatusReason{
		http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusMethodNotAllowed: metav1.StatusReasonMethodNotAllowed,
		http.StatusTooManyRequests:  metav1.StatusReasonTooManyRequests,
		http.StatusBadGateway:       metav1.StatusReasonServiceUnavailable,
	}
	writeJSON(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Message: message, Reason: reasons[code], Code: int32(code)})
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // a client that is gone does not hear it
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}
