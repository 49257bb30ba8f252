// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// IX-01: what the API server asks for is what the node reads, and the words are those that released agents know.
func TestImageExec(t *testing.T) {
	all := ImageExec{Image: "a/b:c", Command: []string{"sh", "-c", ""}, Container: "main", Writable: true,
		PullPolicy: "Always", User: "1:2", UserOf: "side", Stdin: true, Stdout: true, Stderr: true, TTY: true}
	const words = "command=sh&command=-c&command=&container=main&error=1&image=a%2Fb%3Ac&input=1&output=1&pullPolicy=Always&tty=1" +
		"&user=1%3A2&userOf=side&writable=1"
	if got := all.Query().Encode(); got != words {
		t.Errorf("asked for by %s, want %s", got, words)
	}
	if got, err := ParseImageExec(all.Query()); err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("%+v, %v", got, err)
	}
	if q := (ImageExec{}).Query(); len(q) > 0 {
		t.Errorf("nothing is asked for by %v", q)
	}
	if _, err := ParseImageExec(url.Values{"tty": {"yes"}}); err == nil ||
		!strings.Contains(err.Error(), `tty: "yes" is not 0 or 1`) {
		t.Errorf("%v", err)
	}
}

// DC-03, IX-01: a path that is asked for is the one that is served, with its variables.
func TestRoutes(t *testing.T) {
	for route, c := range map[Route]struct {
		values []string
		path   string
	}{
		RouteImageExec:  {[]string{"ns", "web"}, "/imageExec/ns/web"},
		RouteAttachRun:  {[]string{"ns", "web", "u-1", "debug", "3"}, "/attach/ns/web/u-1/debug/3"},
		RouteImageNames: {nil, "/imageNames"},
		RouteTimeline:   {[]string{"ns", "web"}, "/timeline/ns/web"},
	} {
		if word := route.Word(); !strings.HasPrefix(c.path+"/", "/"+word+"/") || word == "" {
			t.Errorf("%s is known by %q", route, word)
		}
		if got := route.Path(c.values...); got != c.path {
			t.Errorf("%s is %s, want %s", route, got, c.path)
		}
		var served []string
		mux := http.NewServeMux()
		mux.HandleFunc("GET "+string(route), func(_ http.ResponseWriter, r *http.Request) {
			for part := range strings.SplitSeq(string(route), "/") {
				if name, ok := strings.CutPrefix(part, "{"); ok {
					served = append(served, r.PathValue(strings.TrimSuffix(name, "}")))
				}
			}
		})
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, route.Path(c.values...), nil))
		if !reflect.DeepEqual(served, c.values) {
			t.Errorf("%s is served with %q", route, served)
		}
	}
}

// FuzzImageExec: what is read of a query is asked for in the same words again.
func FuzzImageExec(f *testing.F) {
	f.Add("image=a&command=ls&command=-l&input=1&output=1&tty=1&user=1:2&pullPolicy=Always")
	f.Add("image=wherry.dev/toolbox&output=1&command=&userOf=x&writable=2")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		e, err := ParseImageExec(q)
		if err != nil {
			return
		}
		if again, err := ParseImageExec(e.Query()); err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%+v becomes %+v, %v", e, again, err)
		}
	})
}
