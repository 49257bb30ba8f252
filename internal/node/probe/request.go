// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Request makes the GET request that the action describes, with agent as its User-Agent unless the action has its own.
// A header Host becomes the request's host; an Accept with an empty value means none. (Pure: nothing is sent.)
func (t Target) Request(ctx context.Context, a *corev1.HTTPGetAction, agent string) (*http.Request, error) {
	address, err := t.Address(a.Host, a.Port)
	if err != nil {
		return nil, err
	}
	scheme := strings.ToLower(cmp.Or(string(a.Scheme), string(corev1.URISchemeHTTP)))
	if scheme != "http" && scheme != "https" {
		return nil, errors.New("scheme " + string(a.Scheme) + ": only HTTP and HTTPS are known")
	}
	u := urlOf(a.Path)
	u.Scheme, u.Host = scheme, address
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range a.HTTPHeaders {
		r.Header.Add(h.Name, h.Value)
	}
	if _, own := r.Header["User-Agent"]; !own {
		r.Header.Set("User-Agent", agent)
	}
	if _, own := r.Header["Accept"]; !own {
		r.Header.Set("Accept", "*/*")
	} else if r.Header.Get("Accept") == "" {
		r.Header.Del("Accept")
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	return r, nil
}

// urlOf reads a path, which may have a query. One that does not read as such is taken by the letter.
func urlOf(path string) *url.URL {
	u, err := url.Parse(path)
	if err != nil || u.Opaque != "" {
		return &url.URL{Path: path}
	}
	return u
}

// maxRedirects is how many requests one try makes at most.
const maxRedirects = 10

// follow is the redirect rule of probes and hooks: to another path or port of the same host yes, away from it no. The
// answer that points away is then the final one.
func follow(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRedirects {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
