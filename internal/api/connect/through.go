// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/wherryproject/wherry/internal/streams"
)

// webSockets hands a WebSocket client (v5) to a node as it is. Translated to SPDY, every stream is opened on its own
// before the first byte, and a node that is lost looks like a command that ended well: the library's client takes the
// end of its connection for exit code 0. A refusal of the node's is passed on by the translator, in the form that
// clients have always had: the translator switches protocols first and then gives the reason on the error channel.
type webSockets struct {
	location  *url.URL
	transport http.RoundTripper
	streams   proxy.Options
	to        rest.Responder
	node      string
}

// ServeHTTP implements http.Handler.
func (h *webSockets) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	asked, err := AskForStreams(req.Context(), h.location, h.transport, req)
	switch {
	case req.Context().Err() != nil: // the client is gone; but something has to be on record
		nodeErrors{h.to, h.node}.Error(w, req, req.Context().Err())
	case err != nil, lacksV5(asked):
		h.translator(h.location, h.transport).ServeHTTP(w, req)
	case !asked.Granted():
		h.refused(asked).ServeHTTP(w, req)
	default:
		if err := asked.Join(w, EarlyReader(req)); err != nil {
			nodeErrors{h.to, h.node}.Error(w, req, err)
		}
		return
	}
	asked.Close()
}

// translator is the library's. It closes the client's connection as soon as the command has ended: were there something
// that it has not read, as the last that somebody typed, the connection would be reset, and with it how the command
// ended may be lost on its way to the client.
func (h *webSockets) translator(location *url.URL, transport http.RoundTripper) http.Handler {
	translates := proxy.NewStreamTranslatorHandler(location, transport, 0, h.streams)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		translates.ServeHTTP(streams.Wrap(w, streams.Linger), req)
	})
}

// refused is a translator that gets the node's refusal, which is known already, as its answer.
func (h *webSockets) refused(asked *streams.Answer) http.Handler {
	answer := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		var text bytes.Buffer
		again := *asked.Response
		again.Body, again.ContentLength, again.TransferEncoding = io.NopCloser(bytes.NewReader(asked.Refusal)),
			int64(len(asked.Refusal)), nil
		err := again.Write(&text)
		return &answeredConn{text: &text}, err
	}}
	location := *h.location
	location.Scheme = "http"
	return h.translator(&location, answer)
}

// upgradeHeaders are those of a request that name the protocol to switch to.
var upgradeHeaders = []string{"Connection", "Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version",
	"Sec-Websocket-Protocol", httpstream.HeaderProtocolVersion}

// AskForStreams asks a node to switch to the protocol that a client asks for, and returns its answer. The end of ctx
// ends the wait for it, which is long where an image is pulled first; it means nothing once streams were granted.
func AskForStreams(ctx context.Context, location *url.URL, transport http.RoundTripper,
	client *http.Request) (*streams.Answer, error) {
	req := (&http.Request{Method: client.Method, URL: location, Host: location.Host,
		Header: http.Header{}}).WithContext(ctx)
	for _, name := range upgradeHeaders {
		if values := client.Header.Values(name); len(values) > 0 {
			req.Header[name] = values
		}
	}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(client) {
		req.Header.Set(wsstream.WebSocketProtocolHeader, streams.V5)
	}
	return dialAndAsk(transport, req)
}

// dialAndAsk makes a request for an upgrade.
func dialAndAsk(transport http.RoundTripper, req *http.Request) (*streams.Answer, error) {
	conn, err := utilproxy.DialURL(req.Context(), req.URL, transport)
	if err != nil {
		return nil, fmt.Errorf("error dialing backend: %w", err)
	}
	return streams.Ask(req.Context(), conn, req)
}

// lacksV5 recognises a kubelet whose runtime speaks only SPDY and the old WebSocket protocols: its library refuses
// others with an empty body, before anything was run. (Refusals for other reasons have a message.)
func lacksV5(asked *streams.Answer) bool {
	return asked.StatusCode == http.StatusForbidden && len(asked.Refusal) == 0
}

// answeredConn is a connection on which a fixed answer is read, whatever is written.
type answeredConn struct {
	net.Conn // nil: no other method is called
	text     *bytes.Buffer
}

// Read implements io.Reader.
func (c *answeredConn) Read(p []byte) (int, error) { return c.text.Read(p) }

// Write implements io.Writer.
func (c *answeredConn) Write(p []byte) (int, error) { return len(p), nil }

// Close implements io.Closer.
func (c *answeredConn) Close() error { return nil }
