// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apiserver/pkg/util/proxy"

	"github.com/wherryproject/wherry/internal/api/connect/kubelettest"
)

// EC-16: a client that goes on to speak when the command has ended, to a node that speaks only SPDY, learns how it ended, and then that
// the connection has: it is not reset, which can take from a client what is still on its way.
func TestTranslatedEndIsNotReset(t *testing.T) {
	kubelet := kubelettest.NewKubelet(t)
	location, err := url.Parse(kubelet.Server.URL + "/exec/default/plain/main?input=1&output=1&command=exit&command=3")
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
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		for range 100 { // which the command does not read
			if conn.WriteMessage(websocket.BinaryMessage, make([]byte, 32<<10)) != nil {
				return
			}
		}
	}()
	status := ""
	for err == nil {
		var message []byte
		if _, message, err = conn.ReadMessage(); err == nil && message[0] == 3 {
			status += string(message[1:])
		}
	}
	if !strings.Contains(status, `"message":"3"`) || !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("it ended with %q, %v", status, err)
	}
	if _, err := conn.NetConn().Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection ended with %v", err)
	}
	conn.Close()
	<-typed
}
