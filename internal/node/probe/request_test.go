// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestRequestURL(t *testing.T) {
	for _, tc := range []struct{ host, path, want string }{
		{"", "", "http://127.0.0.1:80"},
		{"", "/", "http://127.0.0.1:80/"},
		{"", "ready", "http://127.0.0.1:80/ready"},
		{"", "/ready?full=1&a=b", "http://127.0.0.1:80/ready?full=1&a=b"},
		{"", "/a%20b", "http://127.0.0.1:80/a%20b"},
		{"", "/%zz", "http://127.0.0.1:80/%25zz"},
		{"", "mailto:me", "http://127.0.0.1:80/mailto:me"},
		{"app.example", "/", "http://app.example:80/"},
		{"fd00::1", "/", "http://[fd00::1]:80/"},
	} {
		r, err := target().Request(t.Context(), &corev1.HTTPGetAction{Host: tc.host, Path: tc.path, Port: intstr.FromInt(80)}, "agent")
		if err != nil || r.URL.String() != tc.want {
			t.Errorf("PL-04 %q %q: %v, %v; want %s", tc.host, tc.path, r, err, tc.want)
		}
	}
	if _, err := target().Request(t.Context(), &corev1.HTTPGetAction{Scheme: "FILE", Port: intstr.FromInt(80)}, ""); err == nil {
		t.Error("scheme FILE is no error")
	}
}

// roundTripper answers without a network.
type roundTripper func(*http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// PL-04: wherever an application points, no request goes to another host than its own.
func FuzzRedirect(f *testing.F) {
	for _, l := range []string{"/x", "//other/x", "http://other:80/", "http://127.0.0.1:99/", "https://127.0.0.1/", "http://127.0.0.1@other/", "?a", "\x7f", "http://[::1", "http://127.0.0.1.:80/"} {
		f.Add(l, 302)
	}
	f.Fuzz(func(t *testing.T, location string, code int) {
		if code < 100 || code > 599 {
			return
		}
		r, err := target().Request(t.Context(), &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt(80)}, userAgent)
		if err != nil {
			t.Fatal(err)
		}
		requests := 0
		client, release := NewClient(0)
		defer release()
		client.Transport = roundTripper(func(r *http.Request) *http.Response {
			if requests++; r.URL.Hostname() != "127.0.0.1" || requests > maxRedirects {
				t.Fatalf("request %d goes to %s", requests, r.URL)
			}
			return &http.Response{StatusCode: code, Header: http.Header{"Location": {location}}, Body: io.NopCloser(strings.NewReader("")), Request: r}
		})
		if answer, err := client.Do(r); err == nil {
			_ = answer.Body.Close()
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add("h", "/p?q", "Name", "value")
	f.Add("", "mailto:x", "Host", "a b")
	f.Add("::1", "//u@h/p", "User-Agent", "")
	f.Fuzz(func(t *testing.T, host, path, name, value string) {
		a := &corev1.HTTPGetAction{Host: host, Path: path, Port: intstr.FromInt(80), HTTPHeaders: []corev1.HTTPHeader{{Name: name, Value: value}}}
		r, err := target().Request(t.Context(), a, userAgent)
		if err != nil {
			return
		}
		if r.URL.Port() != "80" || r.URL.Scheme != "http" || host == "" && r.URL.Hostname() != "127.0.0.1" {
			t.Errorf("host %q, path %q: request to %s", host, path, r.URL)
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add("a\xffb", 1)
	f.Add("€", 5000)
	f.Fuzz(func(t *testing.T, s string, times int) {
		in := strings.Repeat(s, max(0, min(times, 20<<10/(len(s)+1))))
		out := Cut(in)
		if len(out) > maxMessage || !utf8.ValidString(out) {
			t.Errorf("Cut of %d bytes: %d bytes, valid %v", len(in), len(out), utf8.ValidString(out))
		}
		if utf8.ValidString(in) && (!strings.HasPrefix(in, out) || len(in) > len(out) && len(out) < maxMessage-utf8.UTFMax+1) {
			t.Errorf("Cut of %d valid bytes keeps %d", len(in), len(out))
		}
	})
}
