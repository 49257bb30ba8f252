// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	apiremotecommand "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// webSockets hands a WebSocket client (v5) to a node as it is. Translated to SPDY, every stream is opened on its own before the first
// byte, and a node that is lost looks like a command that ended well: the library's client takes the end of its connection for exit
// code 0. Whatever the node does not grant is told by the translator, in the words that clients have always had: the translator switches
// protocols first and says why on the error channel then.
type webSockets struct {
	location  *url.URL
	transport http.RoundTripper
	streams   proxy.Options
	to        rest.Responder
	node      string
}

// ServeHTTP implements http.Handler.
func (h *webSockets) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	asked, err := askForStreams(req.Context(), h.location, h.transport, req)
	switch {
	case req.Context().Err() != nil: // the client is gone; but something has to be on record
		nodeErrors{h.to, h.node}.Error(w, req, req.Context().Err())
	case err != nil, asked.knowsNoV5():
		h.translator(h.location, h.transport).ServeHTTP(w, req)
	case !asked.granted():
		h.refused(asked).ServeHTTP(w, req)
	default:
		if err := asked.join(w, earlyReader(req)); err != nil {
			nodeErrors{h.to, h.node}.Error(w, req, err)
		}
		return
	}
	asked.close()
}

func (h *webSockets) translator(location *url.URL, transport http.RoundTripper) http.Handler {
	return proxy.NewStreamTranslatorHandler(location, transport, 0, h.streams)
}

// refused is a translator that is given the node's refusal for an answer: the node is not asked again.
func (h *webSockets) refused(asked *askedNode) http.Handler {
	answer := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		var text bytes.Buffer
		again := *asked.answer
		again.Body, again.ContentLength, again.TransferEncoding = io.NopCloser(bytes.NewReader(asked.said)), int64(len(asked.said)), nil
		err := again.Write(&text)
		return &saidConn{text: &text}, err
	}}
	location := *h.location
	location.Scheme = "http"
	return h.translator(&location, answer)
}

// askedNode is a node that was asked for streams, with its answer; nil if it gave none.
type askedNode struct {
	conn   net.Conn
	from   *bufio.Reader // reads conn
	answer *http.Response
	said   []byte // the body of a refusal
}

// upgradeHeaders are those of a request that name the protocol to switch to.
var upgradeHeaders = []string{"Connection", "Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol",
	httpstream.HeaderProtocolVersion}

// askForStreams asks a node to switch to the protocol that a client asks for, and returns its answer. The end of ctx ends the wait for
// it, which is long where an image is pulled first; it means nothing once streams were granted.
func askForStreams(ctx context.Context, location *url.URL, transport http.RoundTripper, client *http.Request) (*askedNode, error) {
	req := (&http.Request{Method: client.Method, URL: location, Host: location.Host, Header: http.Header{}}).WithContext(ctx)
	for _, name := range upgradeHeaders {
		if values := client.Header.Values(name); len(values) > 0 {
			req.Header[name] = values
		}
	}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(client) {
		req.Header.Set(wsstream.WebSocketProtocolHeader, apiremotecommand.StreamProtocolV5Name)
	}
	conn, err := utilproxy.DialURL(ctx, location, transport)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	n, err := answerOn(conn, req)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return n, nil
}

// answerOn makes a request on a connection and reads the answer: all of it, if it is a refusal.
func answerOn(conn net.Conn, req *http.Request) (*askedNode, error) {
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("error sending request: %w", err)
	}
	n := &askedNode{conn: conn, from: bufio.NewReader(conn)}
	var err error
	if n.answer, err = http.ReadResponse(n.from, req); err != nil || n.granted() {
		return n, err
	}
	defer n.answer.Body.Close()
	n.said, err = io.ReadAll(io.LimitReader(n.answer.Body, maxAnswer))
	return n, err
}

// granted tells whether the node has switched protocols.
func (n *askedNode) granted() bool { return n.answer.StatusCode == http.StatusSwitchingProtocols }

// knowsNoV5 tells a kubelet whose runtime speaks SPDY and the old WebSocket protocols only: its library refuses others without a word, and
// before anything was run. (Refusals for other reasons have words.)
func (n *askedNode) knowsNoV5() bool {
	return n.answer.StatusCode == http.StatusForbidden && len(n.said) == 0
}

func (n *askedNode) close() {
	if n != nil {
		_ = n.conn.Close()
	}
}

// lingering is how long a client may take to close its connection after the node has closed its own. Closed at once it might not hear
// the end of what was said, if it says something itself meanwhile.
const lingering = 5 * time.Second

// join connects the client with the node, until one of them is gone; an error says that the client could not be had. What one side does
// not take the other cannot send: no more is held than the sockets do. The node's first word waits for the client's, but not longer than
// hold.
func (n *askedNode) join(w http.ResponseWriter, hold time.Duration) error {
	defer n.close()
	client, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer client.Close()
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %s\r\n", n.answer.Status)
	_ = n.answer.Header.Write(&head) // it is in memory
	head.WriteString("\r\n")
	if _, err := client.Write(head.Bytes()); err != nil {
		return nil // it is gone
	}
	gone, heard := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		from := &told{Reader: client, first: heard}
		if rw != nil && rw.Reader.Buffered() > 0 { // what it did not wait to say
			from.Reader = io.MultiReader(io.LimitReader(rw.Reader, int64(rw.Reader.Buffered())), client)
		}
		_, err := io.Copy(n.conn, from)
		n.close()
		if err != nil { // the node takes no more, and the client is heard out
			_, _ = io.Copy(io.Discard, from)
		}
	}()
	if hold > 0 {
		select {
		case <-heard:
		case <-time.After(hold):
		}
	}
	early := io.LimitReader(n.from, int64(n.from.Buffered())) // it said so with its answer; what follows is not to go through so small a buffer
	if _, err = io.Copy(client, early); err == nil {
		_, err = io.Copy(client, n.conn)
	}
	n.close()
	if half, ok := client.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
		_ = client.SetReadDeadline(time.Now().Add(lingering))
		<-gone
	}
	return nil
}

// saidConn is a connection on which an answer is read, whatever is asked.
type saidConn struct {
	net.Conn // nil: nothing else is asked of it
	text     *bytes.Buffer
}

// Read implements io.Reader.
func (c *saidConn) Read(p []byte) (int, error) { return c.text.Read(p) }

// Write implements io.Writer.
func (c *saidConn) Write(p []byte) (int, error) { return len(p), nil }

// Close implements io.Closer.
func (c *saidConn) Close() error { return nil }
