// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wherryproject/wherry/internal/cli/pods"
)

// ordinary is an API server that is not Wherry's, and counts what it would have run.
func ordinary(t *testing.T) (kubeconfig string, ran *atomic.Int32) {
	t.Helper()
	ran = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/version":
			_, _ = io.WriteString(w, `{"gitVersion":"v1.37.2"}`)
		case strings.HasSuffix(r.URL.Path, "/exec"):
			ran.Add(1)
			http.NotFound(w, r)
		case r.URL.Path == "/api/v1/namespaces/default/pods/web":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default"},
 "spec":{"containers":[{"name":"main"}]},"status":{"phase":"Running"}}`)
		case r.URL.Path == "/api/v1/namespaces/default/pods/here":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"here","namespace":"default"},
 "spec":{"nodeName":"edge","containers":[{"name":"main"}]},"status":{"phase":"Running"}}`)
		case r.URL.Path == "/api/v1/nodes/edge":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"edge"},
 "status":{"nodeInfo":{"kubeletVersion":"v1.37.2+wherry-0.1"}}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, srv.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, ran
}

// DA-10: a server that is not Wherry's takes a request with an image for a command in the pod's own container: it never
// gets one, from no command, and the user is told so and what to do.
func TestAnotherServer(t *testing.T) {
	kubeconfig, ran := ordinary(t)
	t.Setenv("KUBECONFIG", kubeconfig)
	dir := t.TempDir()
	for line, want := range map[string]string{
		"debug web -- ls":                          "not Wherry's|name an image with -m",
		"debug web -m wherry.dev/toolbox -- ls":    "not Wherry's|name an image with -m",
		"debug web -m busybox:1.37 --ttl 1m -- ls": "not Wherry's|--user, --ttl and --rm",
		"debug web -m busybox:1.37 -u 1000 -- ls":  "not Wherry's|--user, --ttl and --rm",
		"debug web -c mine -m wherry.dev/toolbox":  "not Wherry's",
		"exec web -m audit:1 -- ls":                "not Wherry's|own container",
		"cp web:/etc/hosts " + dir + "/hosts":      "not Wherry's",
	} {
		var errs strings.Builder
		code := run(Terminal{In: strings.NewReader(""), Out: io.Discard, Err: &errs}, strings.Fields(line))
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(errs.String(), part) {
				t.Errorf("%s: %q is not said: %s", line, part, errs.String())
			}
		}
		if code == 0 || ran.Load() != 0 {
			t.Errorf("%s: code %d, %d commands run", line, code, ran.Load())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "hosts")); err == nil {
		t.Error("something was copied")
	}
}

// DA-10: with an image that any cluster can pull, it is done in kubectl's way, and said.
func TestAnotherServerByKubectl(t *testing.T) {
	kubeconfig, ran := ordinary(t)
	t.Setenv("KUBECONFIG", "")
	for line, want := range map[string]string{
		"web -m busybox:1.37 --target main -t -i -- ls -l": "web --image busybox:1.37 --stdin KUBECONFIG --target main --profile general -- ls -l",
		// Wherry's nodes have the toolbox, in whosever cluster they are.
		"here -- ls":                       "here --image wherry.dev/toolbox --stdin KUBECONFIG --profile general -- ls",
		"here -m wherry.dev/toolbox -c me": "here --image wherry.dev/toolbox --stdin KUBECONFIG --container me --profile general",
	} {
		var called []string
		var errs strings.Builder
		cmd := pods.NewDebug(Terminal{In: strings.NewReader(""), Out: io.Discard, Err: &errs}, func(args ...string) int {
			called = args
			return 0
		})
		cmd.SetArgs(append([]string{"--kubeconfig", kubeconfig}, strings.Fields(line)...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		want = "debug " + strings.Replace(want, "KUBECONFIG", "--kubeconfig "+kubeconfig+" --namespace default", 1)
		if got := strings.Join(called, " "); got != want || ran.Load() != 0 {
			t.Errorf("%s: called %s; %d commands run", line, got, ran.Load())
		}
		if !strings.Contains(errs.String(), "as kubectl debug does") {
			t.Errorf("%s: it is not said: %s", line, errs.String())
		}
	}
}
