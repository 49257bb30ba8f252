// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"

	"github.com/wherryproject/wherry/internal/cri/critest"
)

// executors are client-go's two ways to run a command.
var executors = map[string]func(*rest.Config, *url.URL) (remotecommand.Executor, error){
	"SPDY": func(c *rest.Config, u *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewSPDYExecutor(c, "POST", u)
	},
	"WebSocket": func(c *rest.Config, u *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(c, "GET", u.String())
	},
}

func (w *world) executor(how, path string) remotecommand.Executor {
	w.t.Helper()
	u, err := url.Parse("https://" + w.addr + path)
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := executors[how](w.masters, u)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func command(words ...string) string { return url.Values{"command": words}.Encode() }

// EC-14: exec in containers of every kind, by both protocols.
func TestExec(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			for _, container := range []string{"main", "debug"} {
				e := w.executor(how, "/exec/default/web/"+container+"?input=1&output=1&error=1&"+command("x", "stdout=hello", "stderr=oops", "echo=true"))
				var out, errOut bytes.Buffer
				err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &errOut})
				if err != nil || out.String() != "hello\ninput" || errOut.String() != "oops\n" {
					t.Errorf("EC-14 exec in %s: %v, stdout %q, stderr %q", container, err, out.String(), errOut.String())
				}
			}
		})
	}
}

func TestExecExitCode(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			e := w.executor(how, "/exec/default/web/uid-1/main?output=1&"+command("x", "exit_code=7"))
			err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
			exit, ok := errors.AsType[exec.CodeExitError](err)
			if !ok || exit.Code != 7 {
				t.Errorf("exit code 7 came as %v", err)
			}
		})
	}
}

type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, ok := <-s
	if !ok {
		return nil
	}
	return &size
}

func TestExecTerminal(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			// stderr=1 with a terminal is what older clients send; it is taken as not asked for.
			e := w.executor(how, "/exec/default/web/main?input=1&output=1&error=1&tty=1&"+command("x", "show=size"))
			queue := make(sizes, 1)
			queue <- remotecommand.TerminalSize{Width: 120, Height: 40}
			defer close(queue)
			in, inEnd := io.Pipe()
			defer func() { _ = inEnd.Close() }()
			var out bytes.Buffer
			err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: in, Stdout: &out, Tty: true, TerminalSizeQueue: queue})
			if err != nil || out.String() != "120x40\n" {
				t.Errorf("%v, %q", err, out.String())
			}
		})
	}
}

// EC-14, EC-15: attach, and leave without ending anything; through the runtime's own streams, and past them.
func TestAttach(t *testing.T) {
	t.Run("CRI", func(t *testing.T) { attaches(t, func(*Config) {}) })
	t.Run("own", func(t *testing.T) { attaches(t, func(c *Config) { c.Streams = scripted{} }) })
}

func attaches(t *testing.T, own func(*Config)) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, own)
			for range 2 {
				e := w.executor(how, "/attach/default/web/debug?input=1&output=1")
				ctx, cancel := context.WithCancel(t.Context())
				out, outEnd := io.Pipe()
				in, inEnd := io.Pipe()
				done := make(chan error, 1)
				go func() {
					done <- e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: outEnd})
				}()
				lines := bufio.NewReader(out)
				if line, err := lines.ReadString('\n'); err != nil || line != "attached to "+w.host.containers["debug"]+"\n" {
					t.Fatalf("EC-14: %q, %v", line, err)
				}
				_, _ = io.WriteString(inEnd, "ping\n")
				if line, err := lines.ReadString('\n'); err != nil || line != "ping\n" {
					t.Fatalf("EC-14: %q, %v", line, err)
				}
				cancel() // the connection is lost
				<-done
				_ = inEnd.Close()
				_ = out.Close()
				if _, ok := w.fake.Find("web", "debug"); !ok || w.fake.PIDNamespace(w.host.containers["debug"]) == "" {
					t.Error("EC-15: the container went with its client")
				}
			}
		})
	}
}

// An old WebSocket client (v4.channel.k8s.io) is passed on as it is.
func TestExecOldWebSocket(t *testing.T) {
	w := newWorld(t)
	tlsConfig, err := rest.TLSConfigFor(w.masters)
	if err != nil {
		t.Fatal(err)
	}
	d := websocket.Dialer{TLSClientConfig: tlsConfig, Subprotocols: []string{"v4.channel.k8s.io"}}
	c, resp, err := d.DialContext(t.Context(), "wss://"+w.addr+"/exec/default/web/main?output=1&"+command("x", "stdout=hello"), nil)
	if err != nil {
		t.Fatalf("%v: %v", err, resp)
	}
	defer func() { _ = c.Close() }()
	var all []string
	for {
		_, data, err := c.ReadMessage()
		if err != nil {
			break
		}
		if len(data) > 1 {
			all = append(all, fmt.Sprintf("%d %s", data[0], data[1:]))
		}
	}
	if len(all) != 2 || all[0] != "1 hello\n" || !strings.Contains(all[1], `"Success"`) {
		t.Errorf("got %q", all)
	}
}

func TestExecRefused(t *testing.T) {
	w := newWorld(t)
	if err := w.fake.Exit(w.host.containers["debug"], 0); err != nil {
		t.Fatal(err)
	}
	w.fake.Fault(func(c critest.Call) error {
		if c.Method == "Attach" {
			return status.Error(codes.Unimplemented, "attach is not implemented")
		}
		if c.Method == "PortForward" {
			return status.Error(codes.ResourceExhausted, "maximum number of in-flight requests exceeded")
		}
		return nil
	})
	for _, tc := range []struct {
		path   string
		status int
		words  string
	}{
		{"/exec/default/web/main?" + command("x"), 400, "at least 1 of stdin, stdout, stderr"},
		{"/exec/default/web/main?tty=1&error=1&" + command("x"), 400, "at least 1 of stdin, stdout, stderr"},
		{"/exec/default/web/main?output=1", 400, "specify a command"},
		{"/exec/default/none/main?output=1&" + command("x"), 404, `pod "none" does not exist`},
		{"/exec/other/web/main?output=1&" + command("x"), 404, `namespace "other"`},
		{"/exec/default/web/uid-2/main?output=1&" + command("x"), 404, `pod "web" does not exist`},
		{"/exec/default/web/nope?output=1&" + command("x"), 404, `container not found ("nope")`},
		{"/exec/default/web/waiting?output=1&" + command("x"), 404, "it was not started yet"},
		{"/exec/default/web/debug?output=1&" + command("x"), 500, `container "debug" in pod "web": container is in CONTAINER_EXITED state`},
		{"/exec/default/web/main?output=1&" + command("x"), 400, "pgrade request required"}, // a plain request
		{"/attach/default/web/main?output=1", 501, "attach is not implemented"},
		{"/attach/default/web/main", 400, "at least 1 of"},
		{"/portForward/default/web", 429, "in-flight"},
		{"/portForward/default/none", 404, "does not exist"},
	} {
		if code, body := w.do(w.masters, http.MethodPost, tc.path); code != tc.status || !strings.Contains(body, tc.words) {
			t.Errorf("%s: %d %q, want %d with %q", tc.path, code, body, tc.status, tc.words)
		}
	}
	w.fake.Down()
	if code, body := w.do(w.masters, http.MethodPost, "/exec/default/web/main?output=1&"+command("x")); code != 503 || strings.Contains(body, "rpc error") {
		t.Errorf("with the runtime away: %d %q", code, body)
	}
	if code, _ := w.do(w.masters, http.MethodDelete, "/exec/default/web/main"); code != 405 {
		t.Errorf("DELETE: %d", code)
	}
}

// EC-14: port-forward, by both protocols, several connections, and an error of one that leaves the others; through the
// runtime's own streams, and past them.
func TestPortForward(t *testing.T) {
	for name, own := range map[string]func(*Config){
		"CRI": func(*Config) {},
		"own": func(c *Config) { c.Forward = newEchoes(t) },
	} {
		t.Run(name, func(t *testing.T) { portForwards(t, own) })
	}
}

func portForwards(t *testing.T, own func(*Config)) {
	for _, how := range []string{"SPDY", "WebSocket"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, own)
			stop, ready := make(chan struct{}), make(chan struct{})
			u := &url.URL{Scheme: "https", Host: w.addr, Path: "/portForward/default/web"}
			var errOut bytes.Buffer
			var fw *portforward.PortForwarder
			if how == "SPDY" {
				tr, upgrader, err := spdy.RoundTripperFor(w.masters)
				if err != nil {
					t.Fatal(err)
				}
				fw, err = portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: tr}, "POST", u), []string{"0:80", "0:1"}, stop, ready, io.Discard, &errOut)
				if err != nil {
					t.Fatal(err)
				}
			} else {
				dialer, err := portforward.NewSPDYOverWebsocketDialer(u, w.masters)
				if err != nil {
					t.Fatal(err)
				}
				if fw, err = portforward.New(dialer, []string{"0:80", "0:1"}, stop, ready, io.Discard, &errOut); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan error, 1)
			go func() { done <- fw.ForwardPorts() }()
			select {
			case <-ready:
			case err := <-done:
				t.Fatalf("EC-14 port-forward: %v", err)
			}
			ports, err := fw.GetPorts()
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if got := talk(t, ports[0].Local, fmt.Sprintf("hello %d\n", i)); got != fmt.Sprintf("port 80\nhello %d\n", i) {
					t.Errorf("EC-14 port-forward: %q", got)
				}
			}
			close(stop)
			if err := <-done; err != nil {
				t.Errorf("EC-14 port-forward: %v", err)
			}
		})
	}
}

// talk sends words to a local port and reads two lines.
func talk(t *testing.T, port uint16, words string) string {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(c, words)
	r := bufio.NewReader(c)
	first, _ := r.ReadString('\n')
	second, _ := r.ReadString('\n')
	return first + second
}

// Close cuts running streams and waits for their handlers; TestMain sees that nothing is left.
func TestCloseCutsStreams(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			in, inEnd := io.Pipe()
			out, outEnd := io.Pipe()
			done := make(chan error, 1)
			e := w.executor(how, "/exec/default/web/main?input=1&output=1&"+command("x", "stdout=up", "echo=true"))
			go func() {
				done <- e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: in, Stdout: outEnd})
			}()
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if err := w.server.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Error("the client still waits after Close")
			}
			_ = inEnd.Close()
			_ = out.Close()
		})
	}
}

// A WebSocket client that goes away ends its handler, though the command in the container goes on in silence.
func TestClientGoesAway(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			e := w.executor(how, "/exec/default/web/main?output=1&"+command("x", "stdout=up", "run_for=1h"))
			ctx, cancel := context.WithCancel(t.Context())
			out, outEnd := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: outEnd}) }()
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			cancel()
			<-done
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				w.server.handlers.Wait()
			}()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Error("the handler waits for a client that is gone")
			}
			_ = out.Close()
		})
	}
}
