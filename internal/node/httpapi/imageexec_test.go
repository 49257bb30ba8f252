// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/wherryproject/wherry/internal/node/imageexec"
)

// refuser is an ImageExec that never gets to a session.
type refuser struct{ asked []imageexec.Request }

// Prepare is part of ImageExec.
func (r *refuser) Prepare(_ context.Context, _ *corev1.Pod, req imageexec.Request) (*imageexec.Session, error) {
	r.asked = append(r.asked, req)
	return nil, &imageexec.Error{Status: http.StatusBadGateway, Message: "image exec: the registry is away"}
}

// IX-12: a runtime that cannot do it answers so, whatever is asked.
func TestImageExecNotImplemented(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/imageExec/default/web", "/imageExec/default/web?image=x&output=1"} {
		if status, body := w.get(w.masters, path); status != http.StatusNotImplemented || !strings.Contains(body, "not implemented") || !strings.Contains(body, "--container-runtime-endpoint") {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
}

// IX-01: what cannot be done is said in plain HTTP, the client's faults first, and nothing is begun for them.
func TestImageExecRefusals(t *testing.T) {
	execs := &refuser{}
	w := newWorld(t, func(c *Config) { c.ImageExec = execs })
	upgrade := func(path string) (int, string) {
		t.Helper()
		e := w.executor("SPDY", path)
		err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil {
			t.Fatalf("%s: there was a stream", path)
		}
		return 0, err.Error()
	}
	for _, c := range []struct {
		ask  func(string) (int, string)
		path string
		want string
	}{
		{func(p string) (int, string) { return w.get(w.masters, p) }, "/imageExec/default/web?image=x&output=1", "must upgrade its connection"},
		{upgrade, "/imageExec/default/web?output=1", "you must specify the image"},
		{upgrade, "/imageExec/default/nobody?image=x&output=1", `"nobody"`},
		{upgrade, "/imageExec/default/web?image=x&output=1&command=ls&command=-l", "the registry is away"},
	} {
		if _, text := c.ask(c.path); !strings.Contains(text, c.want) {
			t.Errorf("%s: %q does not say %q", c.path, text, c.want)
		}
	}
	if len(execs.asked) != 1 || execs.asked[0].Image != "x" || len(execs.asked[0].Command) != 2 {
		t.Errorf("prepared: %+v", execs.asked)
	}
}

// IX-05: a client is known to be gone when its connection ends, also one that had said something before it was taken over.
func TestGoneWatcher(t *testing.T) {
	gone, read := make(chan struct{}), make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := (&goneWatcher{ResponseWriter: w, gone: func() { close(gone) }}).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\n")
		_ = rw.Flush()
		text, err := io.ReadAll(rw)
		read <- string(text)
		if err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		_ = conn.(*goneConn).Conn.Close()
	}))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\nearly "); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
		t.Error("already gone")
	default:
	}
	if _, err := io.WriteString(conn, "and late"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Fatal("nobody noticed")
	}
	if text := <-read; text != "early and late" {
		t.Errorf("read %q", text)
	}
}
