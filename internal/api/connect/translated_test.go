// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/api/connect/kubelettest"
)

// EC-16: a client that goes on to speak when the command has ended, to a node that speaks only SPDY, learns how it ended, and then that
// the connection has: it is not reset, which can take from a client what is still on its way.
func TestTranslatedEndIsNotReset(t *testing.T) {
	kubelet, over := kubelettest.NewKubelet(t), make(chan struct{})
	kubelet.Started = func(w http.ResponseWriter, r *http.Request) {
		remotecommand.ServeAttach(w, r, until(over), "plain", "", "main", &remotecommand.Options{Stdin: true, Stdout: true}, time.Minute,
			time.Minute, remotecommand.SupportedStreamingProtocols)
	}
	location, err := url.Parse(kubelet.Server.URL + "/attach/default/plain/uid/main/0?input=1&output=1")
	if err != nil {
		t.Fatal(err)
	}
	transport := kubelet.Server.Client().Transport
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		HandOver(kubelettest.NewPod("plain", "one", nil, "main"), location, transport, proxy.Options{Stdin: true, Stdout: true},
			kubelettest.Responder{W: w}).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	d := websocket.Dialer{Subprotocols: []string{kubelettest.V5}}
	conn, _, err := d.DialContext(kubelettest.Context(t), "ws"+strings.TrimPrefix(front.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	for err == nil { // until nobody takes any more
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		err = conn.WriteMessage(websocket.BinaryMessage, make([]byte, 1<<20))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	close(over)
	err = nil
	status := ""
	for err == nil {
		var message []byte
		if _, message, err = conn.ReadMessage(); err == nil && message[0] == 3 {
			status += string(message[1:])
		}
	}
	if !strings.Contains(status, `"status":"Success"`) || !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("it ended with %q, %v", status, err)
	}
	if _, err := conn.NetConn().Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection ended with %v", err)
	}
}

// until is a container that reads nothing until it ends.
type until <-chan struct{}

// AttachContainer is part of remotecommand.Attacher.
func (u until) AttachContainer(context.Context, string, string, string, io.Reader, io.WriteCloser, io.WriteCloser, bool,
	<-chan remotecommand.TerminalSize) error {
	<-u
	return nil
}
