// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/ui/gate"
)

// maxAnswer bounds what is kept of the API's answer to who somebody is.
const maxAnswer = 1 << 20

// identity is who the API takes somebody for.
type identity struct {
	user   string
	groups []string
}

// identify asks the API who it is that asks with a token, or with its own credentials if there is none.
func (p *Page) identify(r *http.Request, token string) (identity, *gate.Refusal) {
	const body = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	req := p.onBehalf(r, token, &url.URL{Path: "/apis/authentication.k8s.io/v1/selfsubjectreviews"})
	req.Method, req.Body, req.ContentLength = http.MethodPost, io.NopCloser(bytes.NewBufferString(body)),
		int64(len(body))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json",
		"Content-Length": strconv.Itoa(len(body))} {
		req.Header.Set(name, value)
	}
	for _, name := range []string{"Accept-Encoding", "Content-Encoding", "Range", "If-Match", "If-None-Match"} {
		req.Header.Del(name)
	}
	a := &answer{most: maxAnswer, header: http.Header{}}
	p.o.API.ServeHTTP(a, req)
	return a.identity()
}

// answer is a response that is kept.
type answer struct {
	most   int // bytes that are kept
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	if a.code < http.StatusOK {
		a.code = code
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.body.Len()+len(p) > a.most {
		return 0, fmt.Errorf("the answer has more than %d bytes", a.most)
	}
	return a.body.Write(p)
}

// Flush implements http.Flusher.
func (a *answer) Flush() {}

// identity reads the answer to a SelfSubjectReview.
func (a *answer) identity() (identity, *gate.Refusal) {
	if a.code == http.StatusOK || a.code == http.StatusCreated {
		var review authnv1.SelfSubjectReview
		if err := json.Unmarshal(a.body.Bytes(), &review); err != nil || review.Status.UserInfo.Username == "" {
			return identity{}, &gate.Refusal{Code: http.StatusBadGateway,
				Message: "the API did not say who is signed in: its answer to a SelfSubjectReview cannot be read"}
		}
		return identity{review.Status.UserInfo.Username, review.Status.UserInfo.Groups}, nil
	}
	var status metav1.Status
	if err := json.Unmarshal(a.body.Bytes(), &status); err != nil || status.Message == "" {
		status.Message = fmt.Sprintf("the API did not say who is signed in: it answers %d %s to a SelfSubjectReview",
			a.code, http.StatusText(a.code))
	}
	if a.code < http.StatusBadRequest {
		a.code = http.StatusBadGateway
	}
	return identity{}, &gate.Refusal{Code: a.code, Message: status.Message}
}
