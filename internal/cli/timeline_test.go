// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/timeline"
)

// nodeOf serves one pod and its timeline, and returns a kubeconfig for it whose namespace is shop.
func nodeOf(t *testing.T) string {
	t.Helper()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	h := timeline.History{Pod: timeline.Pod{Namespace: "shop", Name: "web", UID: "u1", Node: "node-1",
		Containers: []timeline.Container{{Name: "main", Kind: podspec.Main}}}, Now: at(4000), Moments: []timeline.Moment{
		{Seq: 1, At: at(0), What: timeline.Seen},
		{Seq: 2, At: at(1), What: timeline.Sandbox, Edge: timeline.Begin}, {Seq: 3, At: at(101), What: timeline.Sandbox, Edge: timeline.End},
		{Seq: 4, At: at(102), What: timeline.Start, Edge: timeline.Begin, Container: "main"},
		{Seq: 5, At: at(110), What: timeline.Created, Container: "main"}, {Seq: 6, At: at(130), What: timeline.Running, Container: "main"},
		{Seq: 7, At: at(131), What: timeline.Start, Edge: timeline.End, Container: "main"},
		{Seq: 8, At: at(132), What: timeline.Started, Container: "main"}, {Seq: 9, At: at(132), What: timeline.Ready, Container: "main"},
		{Seq: 10, At: at(132), What: timeline.Ready}}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/namespaces/shop/pods/web":
			fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop"},"spec":{"nodeName":"node-1"}}`)
		case "/api/v1/namespaces/shop/pods":
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"web"}},{"metadata":{"name":"db"}}]}`)
		case "/api/v1/nodes/node-1/proxy/timeline/shop/web":
			out := json.NewEncoder(w)
			_ = out.Encode(h)
			if r.URL.Query().Get("watch") != "" {
				_ = out.Encode(timeline.History{Gone: true, Now: at(5000), Moments: []timeline.Moment{{Seq: 11, At: at(5000), What: timeline.Left}}})
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"","namespace":"shop"}}]}`, s.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTimeline(t *testing.T) {
	alone(t)
	config := nodeOf(t)
	for args, want := range map[string]string{
		"web --utc":         "shop/web on node-1, since 2026-11-20 12:00:00 UTC, now 4.00s",
		"web":               "Ready after 0.13s: sandbox 0.10s, main 28ms, main until started 2ms, other 2ms.",
		"web -o wide --utc": "0.130s  12:00:00.130  main    runs\n",
		"web -o json":       `"uid": "u1"`,
		"web -o svg":        "<svg ",
		"web -o html":       "<!DOCTYPE html>",
		"web -w --utc":      "5.000s  12:00:05.000  pod     has left the node\nReady after",
		"web -w -o json":    `"what":"left"}],"gone":true`,
	} {
		code, out, errs := call(t, "", append([]string{"timeline", "--kubeconfig", config}, strings.Fields(args)...)...)
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: code %d, %s\n%s\nwant %s", args, code, errs, out, want)
		}
	}
	if _, out, _ := call(t, "", "__complete", "timeline", "--kubeconfig", config, "w"); !strings.HasPrefix(out, "web\n:") {
		t.Errorf("completion of pods: %q", out)
	}
}

func TestTimelineWrongUse(t *testing.T) {
	alone(t)
	for args, want := range map[string]string{
		"timeline":                            "POD is missing",
		"timeline web -o table":               "use wide, json, svg or html",
		"timeline web -w -o svg":              "cannot be combined",
		"timeline web":                        "no server has been started on this machine",
		"timeline web --kubeconfig /no/thing": "/no/thing",
	} {
		code, out, errs := call(t, "", strings.Fields(args)...)
		if code == 0 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %q, %q; want %s", args, code, out, errs, want)
		}
	}
}

func TestASCIIOnly(t *testing.T) {
	for env, want := range map[string]bool{"": false, "LANG=C": true, "LANG=de_DE.UTF-8": false, "LC_ALL=POSIX": true, "LC_CTYPE=en_US.utf8": false} {
		name, value, _ := strings.Cut(env, "=")
		if got := asciiOnly(func(n string) string {
			if n == name {
				return value
			}
			return ""
		}); got != want {
			t.Errorf("%q: %v", env, got)
		}
	}
}
