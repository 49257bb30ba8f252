// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/node/imageexec"
	"github.com/wherryproject/wherry/internal/streams"
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

// waiting is an image exec whose command waits until it is closed.
type waiting struct {
	notes         []string
	begun, closed chan struct{}
	once          sync.Once
}

// Notes is part of session.
func (s *waiting) Notes() []string { return s.notes }

// Run is part of session.
func (s *waiting) Run(context.Context, imageexec.Streams) (int, error) {
	close(s.begun)
	<-s.closed
	return 137, nil
}

// Close is part of session.
func (s *waiting) Close() { s.once.Do(func() { close(s.closed) }) }

// IX-05: when its client goes away, an image exec ends, whatever protocol the client speaks.
func TestImageExecClientGoesAway(t *testing.T) {
	for _, protocol := range []string{"", "channel.k8s.io", "base64.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", streams.V5} {
		t.Run(protocol, func(t *testing.T) {
			s := &waiting{begun: make(chan struct{}), closed: make(chan struct{})}
			over := make(chan struct{})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(over)
				serveSession(w, r, s, imageexec.Request{Stdout: true})
			}))
			defer srv.Close()
			d := websocket.Dialer{}
			if protocol != "" {
				d.Subprotocols = []string{protocol}
			}
			c, _, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
			if err != nil {
				t.Fatal(err)
			}
			<-s.begun
			_ = c.Close()
			select {
			case <-s.closed:
			case <-time.After(time.Minute):
				t.Error("nobody noticed that the client is gone")
				s.Close()
			}
			<-over
		})
	}
}

// IX-10: a WebSocket client is told what the command does not see, as others are.
func TestImageExecNotes(t *testing.T) {
	s := &waiting{notes: []string{"one", "two"}, begun: make(chan struct{}), closed: make(chan struct{})}
	over := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(over)
		serveSession(w, r, s, imageexec.Request{Stdout: true})
	}))
	defer srv.Close()
	d := websocket.Dialer{Subprotocols: []string{streams.V5}}
	c, resp, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if notes := resp.Header.Values(wire.HeaderNote); !slices.Equal(notes, s.notes) {
		t.Errorf("notes %q", notes)
	}
	_ = c.Close()
	<-over
}
