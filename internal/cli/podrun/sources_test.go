// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write fills a folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func secret(name string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s}}\n", name)
}

// -f takes files, folders, URLs and standard input, in any number; all faults are told at once.
func TestSources(t *testing.T) {
	folder := write(t, map[string]string{"b.yml": secret("b"), "a.yaml": web, "c.json": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}}`,
		"README.md": "no manifest", "deeper/d.yaml": secret("d")})
	empty := write(t, map[string]string{"README.md": ""})
	bad := write(t, map[string]string{"1.yaml": "kind: Pod\n", "2.yaml": "apiVersion: v1\n"})
	mux := http.NewServeMux()
	mux.HandleFunc("/pod.yaml", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, web) })
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!doctype html><html></html>") })
	srv := httptest.NewTLSServer(mux)
	defer srv.Close()
	for name, c := range map[string]struct {
		names []string
		want  string
	}{
		"file":         {[]string{folder + "/a.yaml"}, "web"},
		"folder":       {[]string{folder}, "web b c"},
		"URL":          {[]string{srv.URL + "/pod.yaml"}, "web"},
		"several":      {[]string{folder + "/b.yml", "-", folder + "/a.yaml"}, "b in web"},
		"stdin twice":  {[]string{"-", "-"}, "standard input can only be read once"},
		"empty folder": {[]string{empty}, "no manifest in this folder"},
		"faults":       {[]string{bad, folder}, "1.yaml:1: apiVersion: is missing; a pod's is v1\n" + bad + "/2.yaml:1: kind: is missing"},
		"no such URL":  {[]string{srv.URL + "/none"}, "the server answered 404 Not Found"},
		"a web page":   {[]string{srv.URL + "/page"}, "is a web page, not a manifest"},
		"no such file": {[]string{folder + "/none"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Sources{Stdin: strings.NewReader(secret("in")), HTTP: srv.Client()}.Read(t.Context(), c.names)
			var got []string
			for _, o := range objects {
				m, _ := (&Runner{}).defaultNamespace(o.Object)
				got = append(got, m.GetName())
			}
			if err != nil {
				got = []string{err.Error()}
			}
			if text := strings.Join(got, " "); !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// What a run does not take gets advice that works with the server at hand.
func TestInstead(t *testing.T) {
	if text := instead(true); !strings.Contains(text, "wherry kubectl apply -f") {
		t.Errorf("a kind of the server's: %s", text)
	}
	if text := instead(false); !strings.Contains(text, "leave it out") {
		t.Errorf("a kind that it does not have: %s", text)
	}
}
