// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/why"
	"github.com/wherryproject/wherry/internal/why/gather"
)

const (
	// whyPatience bounds how long facts are gathered.
	whyPatience = time.Minute
	// maxFact bounds one answer of the API that facts are taken from: all pods of a cluster are the longest.
	maxFact = 64 << 20
)

// why answers why a pod is not well (?namespace=NS&name=POD, or KIND/NAME as name), as `wherry why -o json` does: from
// what the one who has signed in may look at.
func (p *Page) why(w http.ResponseWriter, r *http.Request) {
	ownOfData(w.Header())
	who, token, done := p.signedIn(w, r)
	defer done()
	if who == nil {
		return
	}
	namespace := r.URL.Query().Get("namespace")
	kind, name, err := gather.Parse(r.URL.Query().Get("name"))
	if err == nil && namespace == "" {
		err = fmt.Errorf("name the namespace of %s", name)
	}
	if err != nil {
		writeStatus(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), whyPatience)
	defer cancel()
	defer context.AfterFunc(who.ended, cancel)()
	facts, err := p.facts(r.WithContext(ctx), token, namespace, kind, name)
	var refusal apierrors.APIStatus
	var missing *gather.Missing
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, why.Explain(facts))
	case errors.As(err, &refusal):
		writeStatus(w, int(refusal.Status().Code), refusal.Status().Message)
	case errors.As(err, &missing):
		writeStatus(w, http.StatusNotFound, err.Error())
	default:
		writeStatus(w, http.StatusBadGateway, err.Error())
	}
}

// facts gathers what is known of a pod, with the rights of a session.
func (p *Page) facts(r *http.Request, token, namespace, kind, name string) (why.Facts, error) {
	asks := &http.Client{Transport: &asker{p, r, token}}
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://wherry.internal", QPS: -1}, asks)
	if err != nil {
		return why.Facts{}, err
	}
	return gather.About(r.Context(), client, namespace, kind, name)
}

// asker asks the API, for a browser's request, what that needs to be answered.
type asker struct {
	page    *Page
	browser *http.Request
	token   string
}

// RoundTrip implements http.RoundTripper. An answer is kept whole.
func (a *asker) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	out := req.Clone(req.Context())
	out.Host, out.RemoteAddr, out.TLS = a.browser.Host, a.browser.RemoteAddr, a.browser.TLS
	if out.Body == nil {
		out.Body = http.NoBody
	}
	to := &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	kept := &answer{most: maxFact, header: http.Header{}}
	defer func() {
		switch v := recover(); {
		case v == http.ErrAbortHandler: // the way of handlers to break an answer off
			resp, err = nil, fmt.Errorf("the API broke off its answer to %s %s", req.Method, req.URL.Path)
		case v != nil:
			panic(v)
		}
	}()
	a.page.o.API.ServeHTTP(kept, a.page.onBehalf(out, a.token, to))
	kept.WriteHeader(http.StatusOK)
	return &http.Response{StatusCode: kept.code, Status: http.StatusText(kept.code), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: kept.header, Body: io.NopCloser(bytes.NewReader(kept.body.Bytes())),
		ContentLength: int64(kept.body.Len()), Request: req}, nil
}
