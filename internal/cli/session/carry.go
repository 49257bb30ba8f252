// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/wherryproject/wherry/internal/streams"
)

const (
	pingPeriod  = 5 * time.Second
	silenceTime = time.Minute // without even an answer to a ping
	writeTime   = time.Minute
	maxStatus   = 1 << 20
)

// carry carries streams until the server says how the command ended.
func carry(ctx context.Context, conn *websocket.Conn, s Streams) (Status, error) {
	w := &writer{conn: conn}
	over := make(chan struct{})
	defer close(over)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	go w.ping(over)
	if s.Sizes != nil {
		go w.sizes(s.Sizes, over)
	}
	if s.Stdin != nil {
		go w.stdin(s.Stdin) // ends with the input, or with the connection at the next thing that is typed
	}
	return listen(conn, s)
}

// listen writes what comes to where it belongs, until the status.
func listen(conn *websocket.Conn, s Streams) (Status, error) {
	alive := func() error { return conn.SetReadDeadline(time.Now().Add(silenceTime)) }
	conn.SetPongHandler(func(string) error { return alive() })
	if err := alive(); err != nil {
		return Status{}, err
	}
	var text []byte
	buf := make([]byte, bufferSize)
	for {
		kind, r, err := conn.NextReader()
		if err != nil {
			return Status{}, lost(err)
		}
		channel, err := streams.Channel(r)
		if kind != websocket.BinaryMessage || err != nil {
			return Status{}, fmt.Errorf("the server sent an invalid message for the protocol %s", protocol)
		}
		switch channel {
		case streams.Stdout:
			err = pour(s.Stdout, r, buf)
		case streams.Stderr:
			err = pour(s.Stderr, r, buf)
		case streams.Status:
			more, rerr := io.ReadAll(io.LimitReader(r, maxStatus))
			text, err = append(text, more...), rerr
			var status Status
			if json.Unmarshal(text, &status) == nil && status.Status != "" {
				return status, nil
			}
			if len(text) >= maxStatus {
				err = errors.New("the server's message about the command's end is too long")
			}
		}
		if err != nil {
			return Status{}, err
		}
	}
}

// pour copies one message, a buffer's worth at a time. Without a destination it is read all the same.
func pour(to io.Writer, from io.Reader, buf []byte) error {
	if to == nil {
		to = io.Discard
	}
	// not by a way of the writer's own, which has no buffer that lasts
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buf)
	return lostIf(err)
}

// LostError is the end of a connection on which no status came.
type LostError struct{ Err error }

func (l LostError) Error() string { return l.Err.Error() }

// Unwrap is for package errors.
func (l LostError) Unwrap() error { return l.Err }

// Lost reports whether an error of a session is that its connection ended before the server reported how the command
// ended.
func Lost(err error) bool {
	_, is := errors.AsType[LostError](err)
	return is
}

func lost(err error) error {
	if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		return LostError{errors.New("the server ended the session without saying how the command did")}
	}
	return LostError{fmt.Errorf("the connection was lost before the server said how the command did: %w", err)}
}

func lostIf(err error) error {
	if err == nil {
		return nil
	}
	var closed *websocket.CloseError
	if errors.As(err, &closed) || errors.Is(err, io.ErrUnexpectedEOF) {
		return lost(err)
	}
	return err // of the writer: a full disk, a closed pipe
}

// writer writes messages, one at a time.
type writer struct {
	mu   sync.Mutex
	conn *websocket.Conn
}

func (w *writer) write(channel byte, text []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	m, err := w.conn.NextWriter(websocket.BinaryMessage)
	if err != nil {
		return err
	}
	if _, err := m.Write([]byte{channel}); err != nil {
		return err
	}
	if _, err := m.Write(text); err != nil {
		return err
	}
	return m.Close()
}

// stdin hands the input on, and its end.
func (w *writer) stdin(in io.Reader) {
	buf := make([]byte, inputSize)
	for {
		n, err := in.Read(buf)
		if n > 0 && w.write(streams.Stdin, buf[:n]) != nil {
			return
		}
		if err != nil {
			// a connection that is gone is noticed by who listens
			_ = w.write(streams.CloseSignal, []byte{streams.Stdin})
			return
		}
	}
}

func (w *writer) sizes(sizes <-chan Size, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case size, ok := <-sizes:
			if !ok {
				return
			}
			text, err := json.Marshal(size)
			if err != nil || w.write(streams.Resize, append(text, '\n')) != nil {
				return
			}
		}
	}
}

// ping keeps the connection in use, so that neither side takes a silent command for a lost one.
func (w *writer) ping(over <-chan struct{}) {
	tick := time.NewTicker(pingPeriod)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			if w.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(pingPeriod)) != nil {
				return
			}
		}
	}
}
