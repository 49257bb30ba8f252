// SPDX-License-Identifier: Apache-2.0

package short

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/wherryproject/wherry/internal/cli/session"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	debugwire "github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// config writes a kubeconfig for a server.
func config(t *testing.T, server string, ca []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"current-context":"c","clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"u","namespace":"work"}}],"users":[{"name":"u","user":{"token":"secret"}}]}`,
		server, base64.StdEncoding.EncodeToString(ca))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func of(environment map[string]string, args ...string) world {
	return world{args: args, getenv: func(name string) string { return environment[name] }, in: strings.NewReader(""),
		out: io.Discard, err: io.Discard}
}

// DC-03, IX-01: plain commands are asked for, with everything that was said; whatever else there is, main sees to.
func TestPlan(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	path := config(t, srv.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	env := map[string]string{"KUBECONFIG": path}
	const exec = "/pods/web/exec?"
	for line, want := range map[string]string{
		"wherry debug web": "work" + exec +
			"ephemeralContainerImage=wherry.dev%2Ftoolbox&ephemeralContainerName=debug&ephemeralContainerUnlessDead=true&stderr=true&stdin=true&stdout=true", "/usr/bin/wherry debug pod/web -n x -- ls -l": "x" + exec + "command=ls&command=-l&ephemeralContainerImage=wherry.dev%2Ftoolbox&ephemeralContainerName=debug&ephemeralContainerUnlessDead=true&stderr=true&stdin=true&stdout=true",
		"wherry debug -qt -m i --target main -p web": "work" + exec +
			"ephemeralContainerImage=i&ephemeralContainerName=debug&ephemeralContainerTarget=main&ephemeralContainerUnlessDead=true&stdin=true&stdout=true&tty=true", "wherry debug --ttl 30m --profile=netadmin web": "work" + exec + "ephemeralContainerImage=wherry.dev%2Ftoolbox&ephemeralContainerName=debug&ephemeralContainerProfile=netadmin&ephemeralContainerTTL=30m0s&ephemeralContainerUnlessDead=true&stderr=true&stdin=true&stdout=true",
		// no terminal here
		"wherry debug -it web": "work" + exec +
			"ephemeralContainerImage=wherry.dev%2Ftoolbox&ephemeralContainerName=debug&ephemeralContainerUnlessDead=true&stderr=true&stdin=true&stdout=true", "wherry debug -p ls": "work/pods/ls/exec?ephemeralContainerImage=wherry.dev%2Ftoolbox&ephemeralContainerName=debug&ephemeralContainerUnlessDead=true&stderr=true&stdin=true&stdout=true",
		"wherry exec web -- true": "work" + exec + "command=true&stderr=true&stdout=true",
		// no terminal here
		"wherry exec -it web -m i --writable -c main": "work" + exec +
			"container=main&image=i&stderr=true&stdin=true&stdout=true&writable=true",
		"wherry exec web -m i -- sh -c -x": "work" + exec +
			"command=sh&command=-c&command=-x&image=i&stderr=true&stdout=true",
		"wherry debug web --user 7:8 -m i": "work" + exec +
			"ephemeralContainerImage=i&ephemeralContainerName=debug&ephemeralContainerUnlessDead=true&ephemeralContainerUser=7%3A8&stderr=true&stdin=true&stdout=true", "wherry exec web -m i -u 7 -- id": "work" + exec +
			"command=id&image=i&stderr=true&stdout=true&user=7", "wherry debug web --user root": "",
		"wherry exec web --user 7 -- id":         "",
		"wherry exec web -m i --user root -- id": "",
		"wherry exec ../services -- true":        "",
		"wherry debug node/vm":                   "",
		"wherry debug a/b":                       "",
		"wherry debug web -n ..":                 "",
		"wherry debug -c debug web":              "",
		"wherry debug ls":                        "",
		"wherry debug ls web":                    "",
		"wherry debug history":                   "",
		"wherry debug -n x stop web debug":       "",
		"wherry debug":                           "",
		"wherry debug --help":                    "",
		"wherry debug web -h":                    "",
		"wherry debug web ls":                    "",
		"wherry debug web --ttl soon":            "",
		"wherry debug web --no-such-flag":        "",
		"wherry debug -- ls":                     "",
		"wherry debug web --context none":        "",
		"wherry debug web --kubeconfig /none":    "",
		"wherry debug web --data-dir /none":      "", // not by way of KUBECONFIG: that may be another server
		"wherry exec web":                        "",
		"wherry exec web --writable -- true":     "",
		"wherry exec -t web -- true":             "",
		"wherry exec -- true":                    "",
		"wherry exec":                            "",
		"wherry get pods":                        "",
		"wherry":                                 "",
		"kubectl exec web -- true":               "",
		"wherry-kubectl debug web -it":           "",
		"wherry __complete debug web":            "",
		"kubectl_complete-wherry debug web --":   "", // it is to complete words, not to start a session
	} {
		p, ok := of(env, strings.Fields(line)...).plan()
		got := ""
		if ok {
			got = strings.TrimPrefix(p.url.String(), srv.URL+"/api/v1/namespaces/")
			if own := p.url.Query().Get(debugask.ParamRequest); own != "" {
				got = strings.Replace(got, "&"+debugask.ParamRequest+"="+own, "", 1)
			} else if !p.whole {
				t.Errorf("%s: the run is asked for without a word of its own", line)
			}
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", line, got, want)
		}
		if ok && p.whole != strings.Contains(line, "exec") {
			t.Errorf("%s: whole is %v", line, p.whole)
		}
	}
	for _, name := range []string{"HTTPS_PROXY", "http_proxy"} {
		if _, ok := of(map[string]string{"KUBECONFIG": path, name: "http://p"}, "wherry", "exec", "web", "--",
			"true").plan(); ok {
			t.Errorf("%s is not looked at", name)
		}
	}
	if _, ok := of(nil, "wherry", "exec", "web", "--data-dir", filepath.Dir(path), "--", "true").plan(); !ok {
		t.Error("this machine's server is not found")
	}
	if _, ok := of(map[string]string{"KUBECONFIG": path + ":" + path}, "wherry", "exec", "web", "--",
		"true").plan(); ok {
		t.Error("two kubeconfigs are client-go's to merge")
	}
}

// DC-03: a request is made once. One that did not reach the server is main's to make; what came of any other is handed
// on, and also if nobody knows what became of it.
func TestCarry(t *testing.T) {
	const status = `{"kind":"Status","status":"Failure","message":"no","reason":"AlreadyExists","code":409}`
	up := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   int
		says   string // "": well
		none   bool   // main's to make
	}{
		"well": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				t.Error("no token")
			}
			conn, err := up.Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for _, m := range []string{"\x01hello", "\x03" +
				`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`} {
				if err := conn.WriteMessage(websocket.BinaryMessage, []byte(m)); err != nil {
					t.Error(err)
				}
			}
		}, 3, "", false},
		"refused": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, status)
		}, 1, "no", false},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		}, session.ExitFailed, "EOF", false},
		"an older server": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, 0, "",
			true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" {
					_, _ = io.WriteString(w, `{"gitVersion":"v1.37.2+wherry"}`)
					return
				}
				asked++
				c.answer(w, r)
			}))
			defer srv.Close()
			path := config(t, srv.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
				Bytes: srv.Certificate().Raw}))
			w := of(map[string]string{"KUBECONFIG": path}, "wherry", "debug", "-p", "web")
			var out, errs bytes.Buffer
			w.out, w.err = &out, &errs
			p, ok := w.plan()
			if !ok {
				t.Fatal("no plan")
			}
			p.announcement = "here we go"
			o := w.carry(t.Context(), p)
			if asked != 1 || (o == nil) != c.none {
				t.Fatalf("asked %d times, %+v", asked, o)
			}
			if !strings.HasPrefix(errs.String(), "here we go\n") {
				t.Errorf("said %q", errs.String())
			}
			if o == nil {
				return
			}
			if o.code != c.code || (o.err == nil) != (c.says == "") ||
				o.err != nil && !strings.Contains(o.err.Error(), c.says) {
				t.Errorf("%+v", o)
			}
			if refusal, ok := errors.AsType[*session.Refusal](o.err); name == "refused" &&
				(!ok || string(refusal.Raw) != status) {
				t.Errorf("%#v", o.err)
			}
			if name == "well" && out.String() != "hello" {
				t.Errorf("out %q", out.String())
			}
		})
	}
}

// DA-10: a server that is not Wherry's gets no request that it would take for another; an ordinary exec it gets.
func TestCarryToAnother(t *testing.T) {
	asked := 0
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"gitVersion":"v1.37.2"}`)
			return
		}
		if r.URL.Path != wire.Base { // whether that is served may be asked
			asked++
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer srv.Close()
	path := config(t, srv.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	for line, want := range map[string]int{"debug web -- ls": 0, "exec web -m audit:1 -- ls": 0, "exec web -- ls": 1} {
		w := of(map[string]string{"KUBECONFIG": path}, append([]string{"wherry"}, strings.Fields(line)...)...)
		w.out, w.err = io.Discard, io.Discard
		p, ok := w.plan()
		if !ok {
			t.Fatalf("%s: no plan", line)
		}
		asked = 0
		if o := w.carry(t.Context(), p); asked != want || want == 0 && o != nil {
			t.Errorf("%s: asked %d times, %+v", line, asked, o)
		}
	}
}

// DA-05: in a cluster that is not Wherry's and has its debugging, the session beside the pod is asked for, once; what
// is refused is the main program's to ask for again, which knows what to do then.
func TestCarryBeside(t *testing.T) {
	up := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	shell, image := wire.Base+"/namespaces/work/pods/web/shell", wire.Base+"/namespaces/work/pods/web/exec"
	for line, c := range map[string]struct {
		path, query string
		end         string // of the session; "": it is refused; "-": it is cut off
		code        int
		none, whole bool
		says        string
	}{
		"debug web -- ls -l": {shell, "command=ls&command=-l&stderr=true&stdin=true&stdout=true",
			`{"status":"Success"}`, 0, false, true, "a note\n"},
		"debug web -q --ttl 1m -m i -u 5": {shell, "image=i&stderr=true&stdin=true&stdout=true&ttl=1m0s&user=5",
			`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`, 3, false, true, ""},
		"debug web --target main": {shell, "container=main&stderr=true&stdin=true&stdout=true", "-",
			session.ExitFailed, false, true, "a note\n"},
		"debug web": {shell, "stderr=true&stdin=true&stdout=true", "", 0, true, false, ""},
		"exec web -m audit:1 -- ls": {image, "command=ls&image=audit%3A1&stderr=true&stdout=true",
			`{"status":"Success"}`, 0, false, true, ""},
	} {
		t.Run(line, func(t *testing.T) {
			var asked []string
			srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/version":
					_, _ = io.WriteString(w, `{"gitVersion":"v1.37.2"}`)
					return
				case wire.Base:
					return
				}
				asked = append(asked, r.URL.Path+"?"+r.URL.Query().Encode())
				if c.end == "" {
					w.WriteHeader(http.StatusNotFound)
					_,
						_ = io.WriteString(w,
						`{"kind":"Status","status":"Failure","message":"no agent","reason":"NoDebugAgent","code":404}`)
					return
				}
				conn, err := up.Upgrade(w, r, http.Header{debugwire.HeaderNote: {"a note"}})
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				if c.end != "-" {
					if err := conn.WriteMessage(websocket.BinaryMessage, []byte("\x03"+c.end)); err != nil {
						t.Error(err)
					}
				}
			}))
			defer srv.Close()
			path := config(t, srv.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
				Bytes: srv.Certificate().Raw}))
			w := of(map[string]string{"KUBECONFIG": path}, append([]string{"wherry"}, strings.Fields(line)...)...)
			var errs bytes.Buffer
			w.err = &errs
			p, ok := w.plan()
			if !ok {
				t.Fatal("no plan")
			}
			o := w.carry(t.Context(), p)
			if want := []string{c.path + "?" + c.query}; !slices.Equal(asked, want) {
				t.Errorf("asked for %q, want %q", asked, want)
			}
			if (o == nil) != c.none || o != nil && (o.code != c.code || !o.Beside() ||
				(o.err != nil) != (c.end == "-")) || errs.String() != c.says {
				t.Errorf("%+v, said %q", o, errs.String())
			}
			if p.whole != (c.whole || strings.HasPrefix(line, "exec")) {
				t.Errorf("whole is %v", p.whole)
			}
		})
	}
}

// A server that is not there is not asked, and nothing is said: main will say it.
func TestUnreached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	w := of(map[string]string{"KUBECONFIG": config(t, "https://"+l.Addr().String(), nil)}, "wherry", "debug", "web")
	var errs bytes.Buffer
	w.err = &errs
	p, ok := w.plan()
	if !ok {
		t.Fatal("no plan")
	}
	p.announcement = "here we go"
	if o := w.carry(t.Context(), p); o != nil || errs.Len() > 0 {
		t.Errorf("%+v, said %q", o, errs.String())
	}
}

// FuzzPlan: whatever is typed, there is a plan for one pod, or none.
func FuzzPlan(f *testing.F) {
	path := filepath.Join(f.TempDir(), "kubeconfig")
	text := `{"current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://h"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	for _, line := range []string{"debug web", "exec -it web -m i -- sh -c x", "debug -p web -- ls", "debug -qtm i web",
		"exec --", "debug -n"} {
		f.Add(strings.ReplaceAll(line, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := append([]string{"wherry"}, strings.Split(line, "\x00")...)
		p, ok := of(map[string]string{"KUBECONFIG": path}, args...).plan()
		if ok && (p.url == nil || p.Subresource != "exec" || p.whole != (args[1] == "exec")) {
			t.Errorf("%q: %+v", args, p)
		}
	})
}
