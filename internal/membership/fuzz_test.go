// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
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

// FuzzAsk: whatever a server answers, it is a wherry server's cluster, another's, or none can be told; what was learnt
// is what holds at a start without one (RS-07), and so does nothing that a damaged file says.
func FuzzAsk(f *testing.F) {
	for _, body := range []string{`{"serviceCIDRs":["10.96.0.0/12"],"clusterDNS":["10.96.0.10"],"clusterDomain":"c"}`, `{}`, `null`, `[]`, ``, `<html>`,
		`{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}`, `{"serviceCIDRs":"x"}`, `{"serviceCIDRs":[null,"\ud800"]}`,
		`{"gitVersion":"v1.37.2+wherry-devel"}`} {
		for _, code := range []int{200, 404, 403, 500} {
			f.Add(code, body)
		}
	}
	server := &answers{}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1", Transport: server, QPS: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, code int, body string) {
		server.code, server.body = 200+max(code, -code)%400, body
		c := Config{Client: client, Node: "n", File: filepath.Join(t.TempDir(), "cluster")}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond) // it is asked again and again
		defer cancel()
		cluster, err := ask(ctx, client)
		if err != nil && cluster != nil {
			t.Fatalf("%+v, %v", cluster, err)
		}
		if err == nil {
			if err := c.remember(Membership{Server: cluster}); err != nil {
				t.Fatal(err)
			}
			if m := c.remembered(); !reflect.DeepEqual(m.Server, cluster) {
				t.Errorf("%+v is remembered as %+v", cluster, m.Server)
			}
		}
		if err := os.WriteFile(c.File, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		c.remembered()
	})
}
