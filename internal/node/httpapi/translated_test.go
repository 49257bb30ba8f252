// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	serverremotecommand "k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/node/imageexec"
)

// says is a command that prints one word and ends.
type says string

// ExecInContainer is part of remotecommand.Executor.
func (s says) ExecInContainer(_ context.Context, _, _, _ string, _ []string, _ io.Reader, out, _ io.WriteCloser,
	_ bool, _ <-chan serverremotecommand.TerminalSize, _ time.Duration) error {
	_, err := io.WriteString(out, string(s))
	return err
}

// IX-05: what a command prints before it ends at once reaches a WebSocket client, however many there are. The connection
// between translator and streams' server must not end by itself: to the client that is a command without output and with code 0.
func TestTranslatedLosesNothing(t *testing.T) {
	const clients, each = 16, 150
	req := imageexec.Request{Stdout: true, Stderr: true}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		translated(&goneWatcher{ResponseWriter: w, gone: func() {}}, r, req, func(w http.ResponseWriter, r *http.Request) {
			serverremotecommand.ServeExec(w, r, says("blue"), "", "", "", nil, &serverremotecommand.Options{Stdout: true, Stderr: true},
				0, streamsTime, serverremotecommand.SupportedStreamingProtocols)
		})
	}))
	defer srv.Close()
	location, err := url.Parse(srv.URL + "/?output=1&error=1")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				e, err := remotecommand.NewWebSocketExecutor(&rest.Config{Host: srv.URL}, "GET", location.String())
				if err != nil {
					t.Error(err)
					return
				}
				var out bytes.Buffer
				if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: io.Discard}); err != nil || out.String() != "blue" {
					t.Errorf("%q, %v", out.String(), err)
				}
			}
		})
	}
	wg.Wait()
}
