// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// How long streams may be idle, and how long a client may take to open them, as the kubelet has it.
const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

// Attacher is a runtime that keeps what containers print for those who attach (EC-16).
type Attacher interface {
	// KeepsOutput says whether it does for this container; others are attached to through the CRI.
	KeepsOutput(ctx context.Context, containerID string) (bool, error)
	// Attach returns nil when the container's process has ended and all its output was written, ctx.Err() when ctx is done.
	Attach(ctx context.Context, containerID string, o tap.Options) error
}

// serveKept joins a client with a container whose output is kept.
func (s *Server) serveKept(w http.ResponseWriter, r *http.Request, id string, o streams) {
	// The request does not end with its connection once that is taken over.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	watched := &lossWatcher{ResponseWriter: w, lost: cancel}
	options := &remotecommand.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY}
	to := attachTo{s.config.Attach, o}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		serveWebSocket(watched, r, to, id, options)
		return
	}
	remotecommand.ServeAttach(watched, r, to, "", "", id, options, streamIdle, streamCreation,
		remotecommand.SupportedStreamingProtocols)
}

// attachTo gives an Attacher the shape that the streaming library asks for.
type attachTo struct {
	to Attacher
	o  streams // what the client asked for: the library makes up the rest of a WebSocket's
}

// AttachContainer implements remotecommand.Attacher. A client that is gone is no error: nobody is there to read it.
func (a attachTo) AttachContainer(ctx context.Context, _, _, id string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	o := tap.Options{TTY: tty, Resize: resize}
	if a.o.Stdin {
		o.Stdin = in
	}
	if a.o.Stdout {
		o.Stdout = out
	}
	if a.o.Stderr {
		o.Stderr = errOut
	}
	err := a.to.Attach(ctx, id, o)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// The channels of the WebSocket protocol.
const (
	wsStdin = iota
	wsStdout
	wsStderr
	wsError
	wsResize
	wsChannels
)

// serveWebSocket is ServeAttach for the WebSocket protocol that can close stdin, which the library only translates.
func serveWebSocket(w http.ResponseWriter, r *http.Request, a attachTo, id string, o *remotecommand.Options) {
	types := make([]wsstream.ChannelType, wsChannels)
	for channel, t := range map[int]wsstream.ChannelType{
		wsStdin: wanted(o.Stdin, wsstream.ReadChannel), wsStdout: wanted(o.Stdout, wsstream.WriteChannel), wsStderr: wanted(o.Stderr, wsstream.WriteChannel),
		wsError: wsstream.WriteChannel, wsResize: wsstream.ReadChannel,
	} {
		types[channel] = t
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{webSocketV5: {Binary: true, Channels: types}})
	conn.SetIdleTimeout(streamIdle)
	_, channels, err := conn.Open(w, r)
	if err != nil {
		return // it has answered
	}
	defer conn.Close()
	first := wsError
	if o.Stdout {
		first = wsStdout
	}
	_, _ = channels[first].Write(nil) // tells the client that it is connected
	sizes := make(chan remotecommand.TerminalSize)
	go readSizes(r.Context(), channels[wsResize], sizes)
	err = a.AttachContainer(r.Context(), "", "", id, channels[wsStdin], channels[wsStdout], channels[wsStderr], o.TTY, sizes)
	end := map[string]any{"metadata": map[string]any{}, "status": "Success"}
	if err != nil {
		end = map[string]any{"metadata": map[string]any{}, "status": "Failure", "reason": "InternalError", "code": http.StatusInternalServerError,
			"message": "error attaching to container: " + err.Error()}
	}
	if text, err := json.Marshal(end); err == nil {
		_, _ = channels[wsError].Write(text)
	}
}

const webSocketV5 = "v5.channel.k8s.io"

func wanted(yes bool, t wsstream.ChannelType) wsstream.ChannelType {
	if yes {
		return t
	}
	return wsstream.IgnoreChannel
}

// readSizes hands on the sizes of the client's window.
func readSizes(ctx context.Context, from io.Reader, to chan<- remotecommand.TerminalSize) {
	defer close(to)
	for d := json.NewDecoder(from); ; {
		var size remotecommand.TerminalSize
		if d.Decode(&size) != nil {
			return
		}
		select {
		case to <- size:
		case <-ctx.Done():
			return
		}
	}
}

// lossWatcher tells when the connection that a handler took over is closed, or lost: when it cannot be read any more.
type lossWatcher struct {
	http.ResponseWriter
	lost func()
}

// Unwrap is for http.ResponseController.
func (l *lossWatcher) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// Hijack implements http.Hijacker.
func (l *lossWatcher) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(l.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	c := &lossyConn{Conn: conn, early: early, lost: l.lost}
	return c, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c)), nil
}

type lossyConn struct {
	net.Conn
	early []byte // what came with the request
	lost  func()
}

func (c *lossyConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if err != nil {
		c.lost()
	}
	return n, err
}

func (c *lossyConn) Close() error {
	defer c.lost()
	return c.Conn.Close()
}
