// SPDX-License-Identifier: Apache-2.0

package podtime

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/timeline"
)

// answers is a server that answers everything alike.
type answers struct {
	code int
	body string
}

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// FuzzSource: whatever a server answers, it is a timeline or an error in words; what a stream has said before it breaks
// off is heard, in order and once (RS-07).
func FuzzSource(f *testing.F) {
	for _, body := range []string{`{"name":"web"}`, `null`, `[]`, ``, `{`, `<html>`, `{"gone":true}{"name":"after"}`, `{"gone":true}`,
		`{"moments":[null,{"at":"x"}]}`, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"m","details":{"causes":[{"reason":"` + timeline.CauseUnbound + `","message":"why"}]}}`,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"message":"keeps no timeline"}`,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"},"spec":{"nodeName":"n/../x"}}`, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":".."}},{}]}`} {
		for _, code := range []int{200, 404, 403, 500} {
			f.Add(code, uint8(3), body)
		}
	}
	server := &answers{}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1", Transport: server, QPS: -1})
	if err != nil {
		f.Fatal(err)
	}
	s := Source{Client: client}
	f.Fuzz(func(t *testing.T, code int, before uint8, body string) {
		server.code, server.body = 200+max(code, -code)%400, body
		ctx := t.Context()
		h, err := s.Get(ctx, "default", "web")
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		if err == nil {
			if _, err := json.Marshal(h); err != nil {
				t.Errorf("%q: %v", body, err)
			}
		}
		var all strings.Builder
		for i := range before {
			text, err := json.Marshal(timeline.History{NoNames: letter(int(i))})
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		server.code, server.body = http.StatusOK, all.String()+body
		var heard []timeline.History
		gone, err := s.stream(ctx, "default", "web", func(h timeline.History) { heard = append(heard, h) })
		if gone && err != nil || gone != (len(heard) > 0 && heard[len(heard)-1].Gone) {
			t.Errorf("gone: %v, %v, after %d", gone, err, len(heard))
		}
		if errors.Is(err, io.EOF) || len(heard) < int(before) {
			t.Errorf("%d of %d parts were heard: %v", len(heard), before, err)
		}
		for i, h := range heard {
			if i < int(before) && h.NoNames != letter(i) || h.Gone && i < len(heard)-1 {
				t.Errorf("part %d: %+v", i, h)
			}
		}
	})
}

// RS-07: a refusal without words is worded.
func TestRefusalWithoutWords(t *testing.T) {
	server := &answers{}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1", Transport: server, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, details := range []string{`{}`, `{"causes":[{"reason":"` + timeline.CauseUnknown + `"}]}`, `{"causes":[{"reason":"` + timeline.CauseNotKept + `"}]}`} {
		server.code, server.body = 515, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","details":`+details+`}`
		if _, err := (Source{Client: client}).Get(t.Context(), "default", "web"); err == nil || !strings.Contains(err.Error(), "pod default/web") {
			t.Errorf("%s: %v", details, err)
		}
	}
}

// letter tells parts apart.
func letter(i int) string { return string(rune('a' + i%26)) }
