// SPDX-License-Identifier: Apache-2.0

package connect

import (
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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

// ways are the two protocols that clients speak, one of them also to a kubelet that speaks it itself.
var ways = []string{"websocket", "spdy", throughout}

const throughout = "websocket throughout"

func executor(t *testing.T, c *cluster, way, pod, sub string, opts runtime.Object) remotecommand.Executor {
	t.Helper()
	c.kubelet.v5.Store(way == throughout)
	cfg := &rest.Config{Host: c.URL}
	query, err := scheme.ParameterCodec.EncodeParameters(opts, schema.GroupVersion{Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(c.URL + "/api/v1/namespaces/default/pods/" + pod + "/" + sub + "?" + query.Encode())
	var e remotecommand.Executor
	if way == "spdy" {
		e, err = remotecommand.NewSPDYExecutor(cfg, http.MethodPost, u)
	} else {
		e, err = remotecommand.NewWebSocketExecutor(cfg, http.MethodGet, u.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestExec runs commands over both protocols; EC-14 and PL-09 build on it.
func TestExec(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			c := newCluster(t)
			t.Run("stdout and stderr are kept apart", func(t *testing.T) {
				var out, errOut bytes.Buffer
				opts := &corev1.PodExecOptions{Stdout: true, Stderr: true, Container: "b", Command: []string{"both"}}
				err := executor(t, c, way, "many", "exec", opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
				if err != nil || out.String() != "out of b" || errOut.String() != "err" {
					t.Errorf("%q %q %v", &out, &errOut, err)
				}
			})
			t.Run("stdin ends", func(t *testing.T) {
				var out bytes.Buffer
				in := strings.Repeat("0123456789abcdef", 1<<14)
				opts := &corev1.PodExecOptions{Stdin: true, Stdout: true, Command: []string{"cat"}}
				err := executor(t, c, way, "plain", "exec", opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdin: strings.NewReader(in), Stdout: &out})
				if err != nil || out.String() != in {
					t.Errorf("%d bytes back of %d: %v", out.Len(), len(in), err)
				}
			})
			t.Run("the exit code is handed on", func(t *testing.T) {
				opts := &corev1.PodExecOptions{Stdout: true, Command: []string{"exit", "7"}}
				err := executor(t, c, way, "plain", "exec", opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: io.Discard})
				var code exec.CodeExitError
				if !errors.As(err, &code) || code.Code != 7 {
					t.Errorf("%T %v", err, err)
				}
			})
			t.Run("a terminal has a size", func(t *testing.T) {
				var out bytes.Buffer
				opts := &corev1.PodExecOptions{Stdin: true, Stdout: true, TTY: true, Command: []string{"size"}}
				err := executor(t, c, way, "plain", "exec", opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{
					Stdin: strings.NewReader(""), Stdout: &out, Tty: true, TerminalSizeQueue: &oneSize{},
				})
				if err != nil || out.String() != "tty=true 80x25" {
					t.Errorf("%q %v", &out, err)
				}
			})
			t.Run("attach", func(t *testing.T) {
				var out bytes.Buffer
				opts := &corev1.PodAttachOptions{Stdin: true, Stdout: true}
				err := executor(t, c, way, "plain", "attach", opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out})
				if err != nil || out.String() != "attached to main: hello" {
					t.Errorf("%q %v", &out, err)
				}
			})
		})
	}
}

type oneSize struct{ given bool }

func (s *oneSize) Next() *remotecommand.TerminalSize {
	if s.given {
		return nil
	}
	s.given = true
	return &remotecommand.TerminalSize{Width: 80, Height: 25}
}

// TestExecRefusals: PL-15, a request that cannot be served says why.
func TestExecRefusals(t *testing.T) {
	c := newCluster(t)
	echo := []string{"both"}
	for _, tc := range []struct {
		name, pod, want string
		opts            corev1.PodExecOptions
	}{
		{"no such pod", "none", `pods "none" not found`, corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"several containers", "many", "a container name must be specified for pod many, choose one of: [a b] or one of the init containers: [setup]", corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"no such container", "many", "container x is not valid for pod many", corev1.PodExecOptions{Stdout: true, Container: "x", Command: echo}},
		{"not scheduled", "homeless", "pod homeless does not have a host assigned", corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"unknown node", "unregistered", `node "nobody" is not registered`, corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"silent node", "early", `node "mute" has published no address yet`, corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"no streams", "plain", "you must specify at least 1 of stdin, stdout, stderr", corev1.PodExecOptions{Command: echo}},
		{"no command", "plain", "you must specify at least one command for the container", corev1.PodExecOptions{Stdout: true}},
	} {
		for _, way := range ways {
			t.Run(tc.name+" "+way, func(t *testing.T) {
				err := executor(t, c, way, tc.pod, "exec", &tc.opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: io.Discard})
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		}
	}
	t.Run("dead node spdy", func(t *testing.T) {
		opts := &corev1.PodExecOptions{Stdout: true, Command: echo}
		err := executor(t, c, "spdy", "lost", "exec", opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), `cannot reach the kubelet of node "dead"`) {
			t.Error(err)
		}
	})
	t.Run("dead node websocket", func(t *testing.T) {
		opts := &corev1.PodExecOptions{Stdout: true, Command: echo}
		err := executor(t, c, "websocket", "lost", "exec", opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Error(err)
		}
	})
	for _, way := range ways {
		t.Run("the kubelet's own refusal "+way, func(t *testing.T) {
			opts := &corev1.PodExecOptions{Stdout: true, Command: echo}
			err := executor(t, c, way, "leaving", "exec", opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: io.Discard})
			if err == nil || !strings.Contains(err.Error(), `container not found ("gone")`) {
				t.Error(err)
			}
		})
	}
}

func TestPortForward(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			c := newCluster(t)
			ports, done := forwardPorts(t, dialer(t, c, way, "plain"), "0:8080", "0:9090")
			for _, p := range ports {
				if got, want := ask(t, int(p.Local), "hello"), fmt.Sprintf("%d got hello", p.Remote); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			done()
		})
	}
	t.Run("not scheduled", func(t *testing.T) {
		c := newCluster(t)
		_, _, err := dialer(t, c, "spdy", "homeless").Dial(portforward.PortForwardProtocolV1Name)
		if err == nil || !strings.Contains(err.Error(), "pod homeless does not have a host assigned") {
			t.Error(err)
		}
	})
}

func dialer(t *testing.T, c *cluster, way, pod string) httpstream.Dialer {
	t.Helper()
	cfg := &rest.Config{Host: c.URL}
	u, _ := url.Parse(c.URL + "/api/v1/namespaces/default/pods/" + pod + "/portforward")
	if way == "websocket" {
		d, err := portforward.NewSPDYOverWebsocketDialer(u, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
}

func forwardPorts(t *testing.T, d httpstream.Dialer, ports ...string) ([]portforward.ForwardedPort, func()) {
	t.Helper()
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f, err := portforward.New(d, ports, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	forwarded, err := f.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return forwarded, func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func ask(t *testing.T, port int, question string) string {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("localhost:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(conn, question)
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
