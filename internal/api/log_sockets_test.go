// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"
)

// logSocket reads a log over a WebSocket until the server ends it.
func logSocket(t *testing.T, path, protocol string) (log []byte, text bool, err error) {
	t.Helper()
	config, err := rest.TLSConfigFor(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = nil
	d := websocket.Dialer{TLSClientConfig: config}
	if protocol != "" {
		d.Subprotocols = []string{protocol}
	}
	conn, answer, err := d.DialContext(t.Context(), strings.Replace(adminConfig(t).Host, "https", "wss", 1)+path, nil)
	if err != nil {
		if answer != nil {
			err = fmt.Errorf("%s: %w", answer.Status, err)
		}
		return nil, false, err
	}
	defer conn.Close()
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil {
			if !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				t.Error(err)
			}
			return log, text, nil
		}
		if text = kind == websocket.TextMessage; text {
			if message, err = base64.StdEncoding.AppendDecode(nil, message); err != nil {
				t.Fatal(err)
			}
		}
		log = append(log, message...)
	}
}

// PL-22: logs come over WebSockets as they come over HTTP, short ones too; whoever asks for a protocol that there is
// not is told.
func TestLogSockets(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	path := "/api/v1/namespaces/" + ns + "/pods/p/log"
	long := strings.Repeat("all work and no play\n", 5000)
	for name, log := range map[string]string{"nothing": "", "short": "hello\n", "long": long} {
		n.answer("containerLogs", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, log) })
		for protocol, wantText := range map[string]bool{"": false, "binary.k8s.io": false,
			"base64.binary.k8s.io": true} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				got, text, err := logSocket(t, path, protocol)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, []byte(log)) || text != wantText {
					t.Errorf("%d bytes of %d, text %t", len(got), len(log), text)
				}
			})
		}
	}
	if _, _, err := logSocket(t, path, "v5.channel.k8s.io"); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("a protocol that logs do not have: %v", err)
	}
}
