// SPDX-License-Identifier: Apache-2.0

package serverkind

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// DA-10: a server is Wherry's if its version says so; one that says nothing is not taken for it.
func TestAsk(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"gitVersion":"v1.37.2+wherry"}`: true,
		`{"gitVersion":"v1.37.2"}`:        false,
		`{"gitVersion":"v1.37.2+k3s1"}`:   false,
		`{"buildDate":"+wherry"}`:         false,
		`["+wherry"]`:                     false,
		`<html>+wherry</html>`:            false,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/prefix/version" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			_, _ = io.WriteString(w, answer)
		}))
		base, err := url.Parse(srv.URL + "/prefix")
		if err != nil {
			t.Fatal(err)
		}
		if is, err := Ask(t.Context(), srv.Client(), base); err != nil || is != want {
			t.Errorf("%s: %v, %v", answer, is, err)
		}
		srv.Close()
		if is, err := Ask(t.Context(), srv.Client(), base); err == nil || is {
			t.Errorf("one that is away: %v, %v", is, err)
		}
	}
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	base, _ := url.Parse(srv.URL)
	if is, err := Ask(t.Context(), srv.Client(), base); err == nil || is {
		t.Errorf("one that does not say: %v, %v", is, err)
	}
}
