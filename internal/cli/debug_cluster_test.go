// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/wherryproject/wherry/internal/cli/pods"
)

// served is a cluster with debug.wherry.dev, which refuses everything with a reason; it keeps what it was asked.
type served struct {
	mu     sync.Mutex
	asked  []*url.URL
	reason string
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"gitVersion":"v1.37.2"}`)
	case r.URL.Path == "/apis/debug.wherry.dev/v1alpha1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"debug.wherry.dev/v1alpha1","resources":[]}`)
	case r.URL.Path == "/api/v1/namespaces/default/pods/web":
		_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default"},
 "spec":{"nodeName":"far","containers":[{"name":"main"}]},"status":{"phase":"Running"}}`)
	case strings.Contains(r.URL.Path, "/pods/web/"):
		s.mu.Lock()
		s.asked = append(s.asked, r.URL)
		s.mu.Unlock()
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":%q,"message":"no, said the cluster"}`, s.reason)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"not here"}`)
	}
}

func (s *served) start(t *testing.T) {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, srv.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
}

// DA-05, DA-10, DA-13: where a cluster has debug.wherry.dev, the same commands ask there, in its words, and never for a
// command in the pod's own container; what it refuses is told. Where it has no agent on the pod's node, debug goes the way of
// kubectl and says so.
func TestClusterWithDebugging(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/f", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const base = "/apis/debug.wherry.dev/v1alpha1/namespaces/default/pods/web/"
	for line, want := range map[string]string{
		"debug web -- ls": base + "shell?command=ls&stderr=true&stdin=true&stdout=true",
		"debug web --target main --profile sysadmin -u 5 -- ls": base + "shell?command=ls&container=main&profile=sysadmin&stderr=true&stdin=true&stdout=true&user=5",
		"debug web --ttl 5m --memory 64Mi --cpus 0.5 --writable -- ls": base +
			"shell?command=ls&cpus=0.5&memory=64Mi&stderr=true&stdin=true&stdout=true&ttl=5m0s&writable=true",
		"exec web -m audit:1 -c main -- ls": base + "exec?command=ls&container=main&image=audit%3A1&stderr=true&stdout=true",
		"cp web:/etc/hosts " + dir + "/hosts": base +
			"files?container=main&op=pack&path=%2Fetc%2Fhosts&stderr=true&stdout=true",
		"cp " + dir + "/f web:/tmp/":  base + "files?container=main&keep=TOKEN&op=unpack&path=%2Ftmp%2F&stderr=true&stdin=true&stdout=true",
		"debug stop web 0123456789ab": base + "sessions?session=0123456789ab",
	} {
		t.Run(line, func(t *testing.T) {
			s := &served{reason: "Forbidden"}
			s.start(t)
			var errs strings.Builder
			code := run(Terminal{In: strings.NewReader(""), Out: io.Discard, Err: &errs}, strings.Fields(line))
			if code == 0 || !strings.Contains(errs.String(), "no, said the cluster") {
				t.Errorf("code %d, %s", code, errs.String())
			}
			if len(s.asked) == 0 {
				t.Fatal("nothing was asked")
			}
			for _, u := range s.asked {
				// The token of a copy that goes on after a cut is a new one each time.
				got := regexp.MustCompile(`&keep=[A-Z2-7]{26}&`).ReplaceAllString(u.RequestURI(), "&keep=TOKEN&")
				if got != want {
					t.Errorf("asked for\n%s, want\n%s", got, want)
				}
			}
		})
	}
	t.Run("no agent", func(t *testing.T) {
		s := &served{reason: "NoDebugAgent"}
		s.start(t)
		var errs strings.Builder
		called := false
		cmd := pods.NewDebug(Terminal{In: strings.NewReader(""), Out: io.Discard, Err: &errs}, func(...string) int {
			called = true
			return 0
		})
		cmd.SetArgs(strings.Fields("web -m busybox:1.37 -- ls"))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Error(err)
		}
		if !called || !strings.Contains(errs.String(), "no, said the cluster: debugging as kubectl debug does") {
			t.Errorf("%v, %s", called, errs.String())
		}
	})
	t.Run("a name", func(t *testing.T) {
		s := &served{}
		s.start(t)
		var errs strings.Builder
		code := run(Terminal{In: strings.NewReader(""), Out: io.Discard, Err: &errs}, strings.Fields("debug web -c mine -m busybox:1.37 -- ls"))
		if code != 2 || !strings.Contains(errs.String(), "--target names") || len(s.asked) > 0 {
			t.Errorf("code %d, %s, asked for %v", code, errs.String(), s.asked)
		}
	})
}
