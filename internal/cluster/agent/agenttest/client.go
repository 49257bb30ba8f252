// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	debugwire "github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/streams"
)

// Client speaks to an agent.
type Client struct {
	t       testing.TB
	address string
	config  *tls.Config
}

// NewClient makes a client of an agent at host:port; cert may be nil.
func NewClient(t testing.TB, pki *PKI, address, node string, cert *tls.Certificate) *Client {
	config := &tls.Config{RootCAs: pki.Pool(), ServerName: wire.ServerName(node), MinVersion: tls.VersionTLS12}
	if cert != nil { // also one of another authority
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	return &Client{t, address, config}
}

// For is it for another test.
func (c *Client) For(t testing.TB) *Client { return &Client{t, c.address, c.config} }

// NewID makes up the ID of a session.
func NewID() string {
	var id [6]byte
	_, _ = rand.Read(id[:]) // it never fails
	return hex.EncodeToString(id[:])
}

// Config is how it speaks TLS, for a test to change.
func (c *Client) Config() *tls.Config { return c.config }

// Status is what of a metav1.Status is looked at.
type Status struct {
	Status, Message, Reason string
	Code                    int
	Details                 struct {
		Causes []struct{ Reason, Message string }
	}
}

// ExitCode is the exit code that a status stands for; -1: none.
func (s Status) ExitCode() int {
	if s.Status == "Success" {
		return 0
	}
	for _, c := range s.Details.Causes {
		if code, err := strconv.Atoi(c.Message); err == nil && c.Reason == "ExitCode" {
			return code
		}
	}
	return -1
}

// Do makes a plain request, and reads the answer into what is not nil.
func (c *Client) Do(method, path string, request, into any) (code int, refused Status, err error) {
	c.t.Helper()
	q, err := wire.Query(request)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequest(method, "https://"+c.address+path+"?"+q.Encode(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: c.config, DisableKeepAlives: true},
		Timeout: time.Minute}
	answer, err := client.Do(req)
	if err != nil {
		return 0, refused, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, refused, err
	}
	if answer.StatusCode/100 != 2 {
		return answer.StatusCode, refused, json.Unmarshal(text, &refused)
	}
	if into != nil {
		err = json.Unmarshal(text, into)
	}
	return answer.StatusCode, refused, err
}

// Session is a session that a client has opened.
type Session struct {
	Notes []string

	t     testing.TB
	conn  *websocket.Conn
	write sync.Mutex
	done  chan struct{}

	mu     sync.Mutex
	out    bytes.Buffer
	errs   bytes.Buffer
	more   chan struct{} // closed, and made anew, with each output
	status *Status
}

// Refused is the error of a session that is not granted.
type Refused struct {
	Code   int
	Status Status
}

func (r *Refused) Error() string {
	return fmt.Sprintf("%d %s: %s", r.Code, r.Status.Reason, r.Status.Message)
}

// Session opens a session.
func (c *Client) Session(w wire.Session) (*Session, error) {
	c.t.Helper()
	q, err := wire.Query(w)
	if err != nil {
		c.t.Fatal(err)
	}
	d := websocket.Dialer{TLSClientConfig: c.config, Subprotocols: []string{streams.V5}, HandshakeTimeout: time.Minute}
	conn, answer, err := d.Dial("wss://"+c.address+wire.PathSession+"?"+q.Encode(), nil)
	if err != nil {
		if answer == nil {
			return nil, err
		}
		refused := &Refused{Code: answer.StatusCode}
		_ = json.NewDecoder(answer.Body).Decode(&refused.Status) // the code says enough
		return nil, refused
	}
	s := &Session{t: c.t, conn: conn, done: make(chan struct{}), more: make(chan struct{}),
		Notes: answer.Header.Values(debugwire.HeaderNote)}
	go s.hear()
	return s, nil
}

func (s *Session) hear() {
	defer close(s.done)
	for {
		_, message, err := s.conn.ReadMessage()
		if err != nil {
			_ = s.conn.Close()
			return
		}
		s.mu.Lock()
		switch {
		case len(message) == 0:
		case message[0] == streams.Stdout:
			s.out.Write(message[1:])
		case message[0] == streams.Stderr:
			s.errs.Write(message[1:])
		case message[0] == streams.Status && len(message) > 1:
			s.status = &Status{}
			_ = json.Unmarshal(message[1:], s.status) // an empty one fails the test
		}
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
	}
}

// Send says something on a channel.
func (s *Session) Send(channel byte, text string) {
	s.t.Helper()
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, text...)); err != nil {
		s.t.Errorf("the session does not hear: %v", err)
	}
}

// CloseInput ends what the session reads.
func (s *Session) CloseInput() {
	s.t.Helper()
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.conn.WriteMessage(websocket.BinaryMessage, []byte{streams.CloseSignal, streams.Stdin}); err != nil {
		s.t.Errorf("the session does not hear: %v", err)
	}
}

// Drop ends the connection as a client that is killed does.
func (s *Session) Drop() { _ = s.conn.NetConn().Close() }

// Await waits until the session has printed something.
func (s *Session) Await(ctx context.Context, text string) {
	s.t.Helper()
	for {
		s.mu.Lock()
		output, more := s.out.String()+s.errs.String(), s.more
		s.mu.Unlock()
		if strings.Contains(output, text) {
			return
		}
		select {
		case <-more:
		case <-s.done:
			s.mu.Lock()
			output, status := s.out.String()+s.errs.String(), s.status
			s.mu.Unlock()
			if strings.Contains(output, text) {
				return
			}
			s.t.Fatalf("the session has ended and has not printed %q but %q (%+v)", text, output, status)
		case <-ctx.Done():
			s.t.Fatalf("the session does not print %q but %q", text, output)
		}
	}
}

// End waits for the session's end; status is nil if there was no word of it.
func (s *Session) End(ctx context.Context) (out, errs string, status *Status) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Fatalf("the session does not end; it has printed %q", s.out.String()+s.errs.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String(), s.errs.String(), s.status
}
