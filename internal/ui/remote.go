// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Remote is the API at a URL, which may have a path. The transport adds the credentials. words is what a person is told
// when the API does not answer.
func Remote(base *url.URL, transport http.RoundTripper, words func(error) string, log *slog.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // a watch is of use as it happens
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			// Between the page and its browser there is loopback, where compressing takes longer than it saves; with
			// none said, Go asks the API for what it can take apart again.
			r.Out.Header.Del("Accept-Encoding")
			if r.Out.Header.Get("Origin") != "" {
				r.Out.Header.Set("Origin", base.Scheme+"://"+base.Host)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			answered(resp.Header) // what takes the connection over is answered past Within
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the browser is gone, or has signed out
			}
			writeStatus(w, http.StatusBadGateway, words(err))
		},
	}
	return Within(proxy) // also an answer before the answer (103) takes none of the page's headers away
}

// Words are those for an API that does not answer, when nothing better is known.
func Words(base *url.URL) func(error) string {
	return func(err error) string {
		return fmt.Sprintf("the Kubernetes API at %s cannot be reached: %v", base.Host, err)
	}
}
