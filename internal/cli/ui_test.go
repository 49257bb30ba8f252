// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wherryproject/wherry/internal/cli/reach"
)

// UI-03: the page is served on loopback alone, and what else is asked for is refused with what to do.
func TestUIFlags(t *testing.T) {
	for args, says := range map[string]string{
		"ui --address 0.0.0.0":    "--address 0.0.0.0: use a loopback address",
		"ui --address 192.0.2.1":  "or have the server serve the page: wherry server --ui",
		"ui --address ::":         "use a loopback address",
		"ui --address localhost":  "use a loopback address",
		"ui --address fe80::1%lo": "use a loopback address",
		"ui --port 65536":         "--port 65536: use 1 to 65535",
		"ui --port -1":            "--port -1: use 1 to 65535",
		"ui web":                  `unexpected argument "web"`,
	} {
		var out, errs bytes.Buffer
		if code := run(Terminal{Out: &out, Err: &errs}, strings.Fields(args)); code != exitUsage ||
			!strings.Contains(errs.String(), says) || out.Len() > 0 {
			t.Errorf("%s: %d, %q%q", args, code, out.String(), errs.String())
		}
	}
	var errs bytes.Buffer
	none := filepath.Join(t.TempDir(), "none")
	if code := run(Terminal{Out: io.Discard, Err: &errs}, []string{"ui", "--data-dir", none}); code != exitFailure ||
		!strings.Contains(errs.String(), "no server has been started on this machine") {
		t.Errorf("%d, %q", code, errs.String())
	}
}

// A port that is taken is told, with what to do.
func TestUIPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = listenAt("127.0.0.1", l.Addr().(*net.TCPAddr).Port)
	if err == nil || !strings.Contains(err.Error(), "is in use: choose another one") {
		t.Error(err)
	}
}

func TestOnDesktop(t *testing.T) {
	for name, row := range map[string]struct {
		env  map[string]string
		uid  int
		want bool
	}{
		"X":           {map[string]string{"DISPLAY": ":0"}, 1000, true},
		"Wayland":     {map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, 1000, true},
		"no desktop":  {nil, 1000, false},
		"root's sudo": {map[string]string{"DISPLAY": ":0"}, 0, false},
	} {
		if got := onDesktop(func(k string) string { return row.env[k] }, row.uid); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// UI-03: each Enter makes one link, and the end of the input none.
func TestOnEnter(t *testing.T) {
	for in, want := range map[string]int{"": 0, "\n": 1, "x": 0, "a\n\nb": 2, strings.Repeat("x", 1000) + "\n": 1} {
		n := 0
		onEnter(strings.NewReader(in), func() { n++ })
		if n != want {
			t.Errorf("%.20q: %d links, want %d", in, n, want)
		}
	}
}

// UI-05: a server that does not answer is told in the words that every command has for it.
func TestUIWordsOfAway(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kc")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	config := clientcmdapi.NewConfig()
	config.Clusters["there"] = &clientcmdapi.Cluster{Server: "http://" + l.Addr().String()}
	config.Contexts["there"] = &clientcmdapi.Context{Cluster: "there"}
	config.CurrentContext = "there"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	f := &reach.Flags{}
	f.Kubeconfig = kubeconfig
	client, err := f.Connect()
	if err != nil {
		t.Fatal(err)
	}
	if client.Kubeconfig != kubeconfig || client.Context != "there" {
		t.Errorf("the page's commands would name %q, %q", client.Kubeconfig, client.Context)
	}
	api, host, err := apiOf(client)
	if err != nil || host != l.Addr().String() {
		t.Fatal(host, err)
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveUI(ctx, front, api) }()
	resp, err := http.Get("http://" + front.Addr().String() + "/api")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusBadGateway ||
		!strings.Contains(string(text), "the server on "+host+" does not respond (connection refused): if it is this machine's, start it with") {
		t.Errorf("%v: %s: %s", err, resp.Status, text)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
}

// UI-05: Ctrl-C does not wait for watches, which have no end.
func TestUIEndsWhileStreaming(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	began, over := make(chan bool), make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serveUI(ctx, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(began)
			<-r.Context().Done()
			close(over)
		}))
	}()
	failed := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + l.Addr().String() + "/ui/watch")
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	<-began
	cancel()
	for what, event := range map[string]func() error{
		"the command": func() error { return <-ended }, "the stream": func() error { <-over; return nil },
	} {
		done := make(chan error, 1)
		go func() { done <- event() }()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s goes on", what)
		}
	}
	<-failed
}
