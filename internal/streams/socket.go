// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Largest is how much of a stream goes into one message: what a process prints at once, if it prints much. A message is
// one frame, for there are clients that understand no other.
const Largest = 128 << 10

// Socket is a server's end of a WebSocket with the channels of [V5]. A goroutine hears what the client says, any number
// write to it, and one ends it.
//
// A client that does not read holds up those who write to it, but not what it says itself: nothing is gathered for it,
// and its pings are answered as soon as they can be.
type Socket struct {
	conn  *websocket.Conn
	idle  time.Duration
	write sync.Mutex // held for a message
	pong  chan string
	heard chan struct{} // closed when the client says nothing more
}

// Accept answers a request for a WebSocket that offers V5. It takes the connection over from w, and sends the headers
// of w along; if it fails, it has answered with the reason. A connection on which nothing is sent for idle is given up.
// The caller calls Hear, and End or Fail.
func Accept(w http.ResponseWriter, r *http.Request, idle time.Duration) (*Socket, error) {
	u := websocket.Upgrader{
		Subprotocols:    []string{V5},
		WriteBufferSize: Largest + 1,    // with its channel
		WriteBufferPool: new(sync.Pool), // a session that says nothing for a while needs no buffer
		// browsers have no credentials that they send by themselves
		CheckOrigin: func(*http.Request) bool { return true },
	}
	conn, err := u.Upgrade(w, r, w.Header())
	if err != nil {
		return nil, err
	}
	s := &Socket{conn: conn, idle: idle, pong: make(chan string, 1), heard: make(chan struct{})}
	conn.SetCloseHandler(func(int, string) error { return nil }) // how it ends is for End and Fail to say
	conn.SetPingHandler(func(text string) error { s.ping(text); return nil })
	go s.answerPings()
	return s, nil
}

// Hear reads from the client until it is gone, or says what is against the protocol, which is an error. What comes on a
// channel is written to its writer; that is closed when the client closes the channel, or is gone. What comes for
// others is dropped. A writer that waits holds up everything else that the client says.
func (s *Socket) Hear(to map[byte]io.WriteCloser) error {
	defer close(s.heard)
	var in room
	defer func() {
		for _, w := range to {
			_ = w.Close()
		}
	}()
	for {
		if err := s.conn.SetReadDeadline(time.Now().Add(s.idle)); err != nil {
			return err
		}
		_, message, err := s.conn.NextReader()
		if err != nil {
			return err
		}
		if err := hear(message, to, &in); err != nil {
			return err
		}
	}
}

// hear reads one message.
func hear(message io.Reader, to map[byte]io.WriteCloser, in *room) error {
	channel, err := Channel(message)
	switch {
	case err == io.EOF:
		return nil // an empty one
	case err != nil:
		return err
	case channel == CloseSignal:
		return hearClose(message, to)
	}
	w, ok := to[channel]
	if !ok {
		w = nobody{}
	}
	return in.pass(sink{w}, message)
}

func hearClose(message io.Reader, to map[byte]io.WriteCloser) error {
	signal, err := io.ReadAll(io.LimitReader(message, 2))
	if err != nil {
		return err
	}
	if len(signal) != 1 || signal[0] >= channels {
		return fmt.Errorf("the client closes what is not a channel: %v", signal)
	}
	if w, ok := to[signal[0]]; ok {
		_ = w.Close()
	}
	return nil
}

// sink takes what its writer does not: a channel that nobody reads any more is no reason not to hear the others.
type sink struct{ to io.Writer }

// Write implements io.Writer.
func (s sink) Write(p []byte) (int, error) {
	_, _ = s.to.Write(p)
	return len(p), nil
}

// nobody takes what comes for a channel that was not asked for.
type nobody struct{}

// Write implements io.Writer.
func (nobody) Write(p []byte) (int, error) { return len(p), nil }

// Close implements io.Closer.
func (nobody) Close() error { return nil }

// Channel writes to one of the client's channels. Its Close does nothing: a channel to the client has no end of its
// own.
func (s *Socket) Channel(channel byte) io.WriteCloser { return output{s, channel} }

type output struct {
	to      *Socket
	channel byte
}

// Write implements io.Writer. What is not too long is one message, also when it is nothing.
func (o output) Write(p []byte) (n int, err error) {
	for {
		part := p[n:min(len(p), n+Largest)]
		if err := o.to.message(o.channel, part); err != nil {
			return n, err
		}
		if n += len(part); n == len(p) {
			return n, nil
		}
	}
}

// Close implements io.Closer.
func (output) Close() error { return nil }

// message writes one message in one frame.
func (s *Socket) message(channel byte, p []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	now := time.Now()
	if err := s.conn.SetWriteDeadline(now.Add(s.idle)); err != nil {
		return err
	}
	if err := s.conn.SetReadDeadline(now.Add(s.idle)); err != nil { // a client that only listens is not idle
		return err
	}
	w, err := s.conn.NextWriter(websocket.BinaryMessage)
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte{channel}); err != nil {
		return err
	}
	if _, err := w.Write(p); err != nil {
		return err
	}
	return w.Close()
}

// ping has a ping answered: only the last of those that wait needs an answer (RFC 6455, 5.5.3).
func (s *Socket) ping(text string) {
	for {
		select {
		case s.pong <- text:
			return
		default:
		}
		select {
		case <-s.pong:
		default:
		}
	}
}

// answerPings answers pings until the client says nothing more. An answer that cannot be sent is no reason to stop
// listening.
func (s *Socket) answerPings() {
	for {
		select {
		case <-s.heard:
			return
		case text := <-s.pong:
			_ = s.conn.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(s.idle))
		}
	}
}

// End sends the last word on a channel and closes the socket as one that has come to its normal end, which clients take
// for exit code 0 if they have heard no other. It returns when the client has closed its side, and by [Lingering] at
// the latest after all was sent. After Fail it does nothing.
func (s *Socket) End(channel byte, word []byte) {
	_, _ = s.Channel(channel).Write(word)
	s.sayClosed(websocket.CloseNormalClosure, s.idle)
	_ = End(s.conn.NetConn(), s.heard)
}

// closing is how long a client that does not read may hold up the word that the connection has failed.
const closing = time.Second

// Fail closes the socket at once, as one that has failed: a client must not take that for the end of the process. After
// End it does nothing more than to close it.
func (s *Socket) Fail() {
	s.sayClosed(websocket.CloseInternalServerErr, closing)
	_ = s.conn.Close()
}

// sayClosed tells the client that no message comes any more, and why; only the first reason is sent. A client that is
// gone does not hear it.
func (s *Socket) sayClosed(code int, within time.Duration) {
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(within))
}
