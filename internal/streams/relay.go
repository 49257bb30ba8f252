// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"time"
)

// MaxRefusal bounds what is kept of an answer that is not an upgrade.
const MaxRefusal = 1 << 20

// Answer is what a server has answered to a request for an upgrade that was made on behalf of a client.
type Answer struct {
	*http.Response        // its body is read
	Refusal        []byte // the body, if the server has not switched protocols; what is longer than [MaxRefusal] is cut

	conn net.Conn
	from *bufio.Reader // reads conn
}

// Ask makes a request on a connection to a server, and returns the answer. The end of ctx ends the wait for it, which
// may be long; it means nothing once the server has switched protocols. If Ask fails it closes the connection, if not
// the caller calls Join or Close.
func Ask(ctx context.Context, server net.Conn, req *http.Request) (*Answer, error) {
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	a, err := ask(server, req)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = server.Close()
		return nil, err
	}
	return a, nil
}

func ask(server net.Conn, req *http.Request) (*Answer, error) {
	if err := req.Write(server); err != nil {
		return nil, fmt.Errorf("error sending request: %w", err)
	}
	a := &Answer{conn: server, from: bufio.NewReader(server)}
	var err error
	if a.Response, err = http.ReadResponse(a.from, req); err != nil || a.Granted() {
		return a, err
	}
	defer a.Body.Close()
	a.Refusal, err = io.ReadAll(io.LimitReader(a.Body, MaxRefusal))
	return a, err
}

// Granted reports whether the server has switched protocols.
func (a *Answer) Granted() bool { return a.StatusCode == http.StatusSwitchingProtocols }

// Close closes the connection to the server. A nil Answer has none.
func (a *Answer) Close() {
	if a != nil {
		_ = a.conn.Close()
	}
}

// Refuse gives the server's refusal to the client as an ordinary answer; what is not one (a status below 200) as a bad
// gateway.
func (a *Answer) Refuse(w http.ResponseWriter) {
	defer a.Close()
	if a.StatusCode < http.StatusOK { // net/http panics below 100
		http.Error(w, fmt.Sprintf("the response has the status %d", a.StatusCode), http.StatusBadGateway)
		return
	}
	header := w.Header()
	maps.Copy(header, a.Header)
	// about the other connection
	for _, own := range []string{"Connection", "Transfer-Encoding", "Content-Length", "Upgrade"} {
		header.Del(own)
	}
	w.WriteHeader(a.StatusCode)
	_, _ = w.Write(a.Refusal) // a client that is gone does not hear it
}

// Join connects the client with the server, until one of them is gone; an error says that the client could not be had.
// What one side does not take the other cannot send: no more is held than the sockets do. A server that is gone, or
// takes no more, is not the end of what it has sent: that reaches the client first. The server's first word waits for
// the client's, but not longer than hold.
func (a *Answer) Join(w http.ResponseWriter, hold time.Duration) error {
	defer a.Close()
	client, err := Take(w)
	if err != nil {
		return err
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %s\r\n", a.Status)
	_ = a.Header.Write(&head) // it is in memory
	head.WriteString("\r\n")
	if _, err := client.Write(head.Bytes()); err != nil {
		_ = client.Close()
		return nil // it is gone
	}
	gone, spoken := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		a.upstream(&firstWord{Reader: client, spoken: spoken})
	}()
	if hold > 0 {
		timer := time.NewTimer(hold)
		defer timer.Stop()
		select {
		case <-spoken:
		case <-timer.C:
		}
	}
	to := &taking{Writer: client}
	// came with the answer; what follows is not to go through so small a buffer
	early := io.LimitReader(a.from, int64(a.from.Buffered()))
	if _, err = io.Copy(to, early); err == nil {
		_ = Pass(to, a.conn)
	}
	a.Close()
	if to.failed {
		_ = client.Close()
	} else {
		_ = End(client, gone)
	}
	return nil
}

// taking remembers whether its writer has refused something.
type taking struct {
	io.Writer
	failed bool
}

// Write implements io.Writer.
func (t *taking) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	t.failed = t.failed || err != nil
	return n, err
}

// upstream hands on to the server what the client says, until the client is gone: one that the server does not listen
// to any more is heard out.
func (a *Answer) upstream(client io.Reader) {
	defer a.Close()
	if err := Pass(a.conn, client); err != nil {
		_, _ = io.Copy(io.Discard, client)
	}
}

// firstWord closes spoken when its reader has read something, or will not.
type firstWord struct {
	io.Reader
	spoken chan struct{} // nil: closed
}

// Read implements io.Reader.
func (f *firstWord) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.spoken != nil && (n > 0 || err != nil) {
		close(f.spoken)
		f.spoken = nil
	}
	return n, err
}
