// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func target() Target {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1"}}
	return Target{Pod: pod, Container: &corev1.Container{Name: "app"}, PodIP: "127.0.0.1"}
}

// running starts a container on a fake runtime.
func running(t *testing.T,
	exec func(critest.Info, []string) (critest.ExecAnswer, bool)) (*critest.Fake, *cri.Client, Target) {
	t.Helper()
	fake := critest.NewFake(critest.Config{Images: map[string]critest.Image{"app": {}}, Exec: exec})
	to := target()
	to.ContainerID = fake.Started(t)
	return fake, fake.Client(), to
}

func exec(words ...string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: words}}
}

func sleeping(seconds int64) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}
}

// PL-04, SC-07, SC-10: hooks that take time, their deadlines and their being given up.
func TestTime(t *testing.T) {
	gone := errors.New("the pod leaves")
	for _, tc := range []struct {
		name   string
		hook   *corev1.LifecycleHandler
		cancel time.Duration // from the start; 0: never
		took   time.Duration
		is     error
		say    string
	}{
		{name: "exec", hook: exec("x", "run_for=3s"), took: 3 * time.Second},
		{name: "exec has no limit", hook: exec("x", "run_for=100h"), took: 100 * time.Hour},
		{
			name: "exec given up", hook: exec("x", "run_for=3s"), cancel: time.Second, took: time.Second, is: gone,
			say: `Exec lifecycle hook ([x run_for=3s]) for Container "app" in Pod "web_shop(u1)" failed - error: command in container `,
		},
		{
			name: "exec fails", hook: exec("x", "run_for=1s", "stdout=no", "stderr=why", "exit_code=4"),
			took: time.Second,
			say: `Exec lifecycle hook ([x run_for=1s stdout=no stderr=why exit_code=4]) for Container "app" in Pod "web_shop(u1)" failed - ` +
				"error: command 'x run_for=1s stdout=no stderr=why exit_code=4' exited with 4: no\nwhy",
		},
		{name: "exec of nothing", hook: exec(),
			say: `Exec lifecycle hook ([]) for Container "app" in Pod "web_shop(u1)" failed - error: no command`},
		{name: "sleep", hook: sleeping(5), took: 5 * time.Second},
		{name: "sleep of zero", hook: sleeping(0)},
		{name: "sleep of less", hook: sleeping(-1)},
		{
			name: "sleep given up", hook: sleeping(1 << 60), cancel: time.Hour, took: time.Hour, is: gone,
			say: `Sleep lifecycle hook (1152921504606846976) for Container "app" in Pod "web_shop(u1)" failed - error: container terminated before sleep hook finished: `,
		},
		{name: "no handler", hook: &corev1.LifecycleHandler{},
			say: `the lifecycle hook of Container "app" in Pod "web_shop(u1)" is not one of exec, httpGet, tcpSocket and sleep`},
	} {
		t.Run("PL-04 "+tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, to := running(t, nil)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tc.cancel > 0 {
					time.AfterFunc(tc.cancel, func() { cancel(gone) })
				}
				began := time.Now()
				cut := 0
				err := New(c, Notices{SleepCut: func() { cut++ }}).Run(ctx, to, tc.hook)
				if want := tc.hook.Sleep != nil && tc.is != nil; (cut == 1) != want || cut > 1 {
					t.Errorf("told %d times of a sleep cut off; want it: %t", cut, want)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("took %s, want %s", took, tc.took)
				}
				if (err != nil) != (tc.say != "" || tc.is != nil) || tc.is != nil && !errors.Is(err, tc.is) ||
					err != nil && !strings.Contains(err.Error(), tc.say) {
					t.Errorf("Run: %v; want %v, %q", err, tc.is, tc.say)
				}
			})
		})
	}
}

// PL-04: the command is run as it stands, and what it says is cut.
func TestExec(t *testing.T) {
	var ran []string
	_, c, to := running(t, func(_ critest.Info, cmd []string) (critest.ExecAnswer, bool) {
		ran = cmd
		return critest.ExecAnswer{Stderr: strings.Repeat("no ", 1<<20) + "\xff", ExitCode: 1}, true
	})
	to.Container.Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	err := New(c, Notices{}).Run(t.Context(), to, exec("x", "$(A)"))
	if err == nil {
		t.Fatal("a command that failed is no error")
	}
	if n := len(err.Error()); n > 11<<10 || n < 10<<10 {
		t.Errorf("Run: %d bytes: %.100s…", n, err.Error())
	}
	if len(ran) != 2 || ran[1] != "$(A)" {
		t.Errorf("ran %q", ran)
	}
}

// PL-04: an error of the runtime is shown, and no failure of the command.
func TestRuntimeAway(t *testing.T) {
	fake, c, to := running(t, nil)
	fake.Down()
	if err := New(c, Notices{}).Run(t.Context(), to, exec("x")); !cri.Unavailable(err) ||
		!strings.HasPrefix(err.Error(), "Exec lifecycle hook ([x])") {
		t.Errorf("Run: %v", err)
	}
}

// errGivenUp is why a test gives hooks up.
var errGivenUp = errors.New("given up")

// PL-04: over a connection too, the error says why the hook was given up.
func TestGivenUpOverGRPC(t *testing.T) {
	fake, _, to := running(t, nil)
	c, stop, err := fake.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	defer func() { _ = c.Close() }()
	for range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Millisecond, func() { cancel(errGivenUp) })
		if err := New(c, Notices{}).Run(ctx, to, exec("x", "run_for=1h")); !errors.Is(err, errGivenUp) {
			t.Fatalf("Run: %v", err)
		}
	}
}

func get(port int, path string, change ...func(*corev1.HTTPGetAction)) *corev1.LifecycleHandler {
	a := &corev1.HTTPGetAction{Port: intstr.FromInt(port), Path: path}
	for _, f := range change {
		f(a)
	}
	return &corev1.LifecycleHandler{HTTPGet: a}
}

func tcp(port intstr.IntOrString) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
}

// PL-04, SC-07: HTTP, HTTPS and TCP hooks against real servers.
func TestNetwork(t *testing.T) {
	asked := make(chan *http.Request, 10)
	hang := make(chan struct{})
	app := http.NewServeMux()
	app.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { asked <- r })
	app.HandleFunc("/500", func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.WriteHeader(500)
	})
	app.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		http.Redirect(w, r, "http://wherry.invalid/", http.StatusFound)
	})
	app.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		_, _ = io.Copy(w, neverending('x'))
	})
	app.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { <-hang })
	plain, secure := httptest.NewServer(app), httptest.NewTLSServer(app)
	defer plain.Close()
	defer secure.Close()
	defer close(hang)
	port, securePort := plain.Listener.Addr().(*net.TCPAddr).Port, secure.Listener.Addr().(*net.TCPAddr).Port
	https := func(a *corev1.HTTPGetAction) { a.Scheme = corev1.URISchemeHTTPS }
	closed := closedPort(t)

	for _, tc := range []struct {
		name  string
		hook  *corev1.LifecycleHandler
		asked string        // path of the request that the application saw
		after time.Duration // given up; 0: never
		say   string
	}{
		{name: "HTTP", hook: get(port, "/hook?a=b"), asked: "/hook"},
		{name: "HTTPS", hook: get(securePort, "/hook", https), asked: "/hook"},
		{name: "HTTP, any status will do", hook: get(port, "/500"), asked: "/500"},
		{name: "HTTP, redirected away", hook: get(port, "/away"), asked: "/away"},
		{name: "HTTP, an answer without end", hook: get(port, "/big"), asked: "/big"},
		{name: "HTTP, refused", hook: get(closed, "/hook"),
			say: `HTTP lifecycle hook (/hook) for Container "app" in Pod "web_shop(u1)" failed - error: Get "http://127.0.0.1:`},
		{name: "HTTP, given up", hook: get(port, "/hang"), after: 20 * time.Millisecond, say: "/hang\": given up"},
		{name: "TCP", hook: tcp(intstr.FromInt(port))},
		{name: "TCP, refused", hook: tcp(intstr.FromInt(closed)), say: "TCP lifecycle hook ("},
		{name: "TCP, unknown port", hook: tcp(intstr.FromString("web")),
			say: `failed - error: port "web" is not among the container's named ports`},
	} {
		t.Run("PL-04 "+tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.after > 0 {
				time.AfterFunc(tc.after, func() { cancel(errGivenUp) })
			}
			err := New(nil, Notices{}).Run(ctx, target(), tc.hook)
			if (err != nil) != (tc.say != "") || err != nil && !strings.Contains(err.Error(), tc.say) {
				t.Errorf("Run: %v, want %q", err, tc.say)
			}
			if tc.after > 0 && !errors.Is(err, errGivenUp) {
				t.Errorf("%v does not say why it was given up", err)
			}
			if tc.asked == "" {
				return
			}
			if r := <-asked; r.URL.Path != tc.asked || r.UserAgent() != "kube-lifecycle/1.37" ||
				r.Header.Get("Accept") != "*/*" {
				t.Errorf("the application was asked for %s by %q", r.URL, r.UserAgent())
			}
		})
	}
}

// PL-04: an HTTPS hook that plain HTTP answers is sent again by HTTP, without its credentials, and somebody is told; what
// fails both ways says why HTTPS did. A certificate is nothing to fall back for.
func TestPlainHTTP(t *testing.T) {
	seen := make(chan http.Header, 10)
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/dies" {
			panic(http.ErrAbortHandler)
		}
		seen <- r.Header
		w.WriteHeader(http.StatusTeapot)
	})
	plain, secure := httptest.NewServer(app), httptest.NewTLSServer(app)
	defer plain.Close()
	defer secure.Close()
	for _, tc := range []struct {
		name          string
		server        *httptest.Server
		path          string
		authorization string // that the application saw
		told          bool
		say           string
	}{
		{name: "falls back", server: plain, path: "/hook", told: true},
		{name: "need not", server: secure, path: "/hook", authorization: "secret"},
		{name: "fails both ways", server: plain, path: "/dies", say: "server gave HTTP response to HTTPS client"},
	} {
		t.Run("PL-04 "+tc.name, func(t *testing.T) {
			var told []string
			notices := Notices{PlainHTTP: func(p *corev1.Pod, address string) { told = append(told, p.Name+" "+address) }}
			address := tc.server.Listener.Addr().(*net.TCPAddr)
			err := New(nil, notices).Run(t.Context(), target(), get(address.Port, tc.path, func(a *corev1.HTTPGetAction) {
				a.Scheme = corev1.URISchemeHTTPS
				a.HTTPHeaders = []corev1.HTTPHeader{{Name: "Authorization", Value: "secret"}, {Name: "X-Own", Value: "kept"}}
			}))
			if (err != nil) != (tc.say != "") || err != nil && !strings.Contains(err.Error(), tc.say) {
				t.Fatalf("Run: %v, want %q", err, tc.say)
			}
			if want := "web " + address.String(); (len(told) == 1 && told[0] == want) != tc.told || len(told) > 1 {
				t.Errorf("told of %q, want %q: %t", told, want, tc.told)
			}
			if err != nil {
				return
			}
			if h := <-seen; h.Get("Authorization") != tc.authorization || h.Get("X-Own") != "kept" {
				t.Errorf("the application saw %v", h)
			}
		})
	}
}

// neverending is a reader of one byte, for ever.
type neverending byte

func (b neverending) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// closedPort is a port that nobody listens on.
func closedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
