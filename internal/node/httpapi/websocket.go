// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"

	"github.com/wherryproject/wherry/internal/streams"
)

// webSocketV5 is the WebSocket protocol that can close stdin (KEP-4006). The library has a server for it in the translator to SPDY
// only; here it is served without a detour.
const webSocketV5 = "v5.channel.k8s.io"

// The channels of the WebSocket protocol.
const (
	wsStdin = iota
	wsStdout
	wsStderr
	wsError
	wsResize
)

// process is what a client's streams are joined with. Streams that the client did not ask for are nil. It returns when the process has
// ended and all its output was written, with utilexec.ExitError for an exit code other than 0.
type process func(ctx context.Context, in io.Reader, out, errOut io.WriteCloser, sizes <-chan remotecommand.TerminalSize) error

// serveWebSocket joins a WebSocket client with a process. doing says what failed, if it fails: "error attaching to container". The
// writer must tell when its connection is lost by ending the request's context. A client that does not read holds up the writes of the
// process: nothing is gathered for it.
func serveWebSocket(w http.ResponseWriter, r *http.Request, o *remotecommand.Options, doing string, run process) {
	guarded := &endGuard{ResponseWriter: w}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{webSocketV5: {Binary: true, Channels: []wsstream.ChannelType{
		wsStdin: wanted(o.Stdin, wsstream.ReadChannel), wsStdout: wanted(o.Stdout, wsstream.WriteChannel), wsStderr: wanted(o.Stderr, wsstream.WriteChannel),
		wsError: wsstream.WriteChannel, wsResize: wanted(o.TTY, wsstream.ReadChannel),
	}}})
	conn.SetIdleTimeout(streamIdle)
	_, channels, err := conn.Open(guarded, r)
	if err != nil {
		return // it has answered
	}
	defer guarded.over()
	defer conn.Close()
	first := wsError
	switch {
	case o.Stdout:
		first = wsStdout
	case o.Stderr:
		first = wsStderr
	}
	_, _ = channels[first].Write(nil) // tells the client that it is connected

	var in io.Reader
	var out, errOut io.WriteCloser
	if o.Stdin {
		held := newInbox()
		defer held.stop()
		go func() { _, _ = io.Copy(held, channels[wsStdin]); held.end() }()
		in = held
	}
	if o.Stdout {
		out = &output{conn: guarded.conn, channel: wsStdout}
	}
	if o.Stderr {
		errOut = &output{conn: guarded.conn, channel: wsStderr}
	}
	sizes := make(chan remotecommand.TerminalSize, 1)
	go readSizes(channels[wsResize], sizes)
	err = run(r.Context(), in, out, errOut, sizes)
	if held, ok := in.(*inbox); ok {
		held.stop()
	}
	if text, err := json.Marshal(endOf(err, doing)); err == nil {
		guarded.told.Store(true)
		_, _ = channels[wsError].Write(text)
	}
}

func wanted(yes bool, t wsstream.ChannelType) wsstream.ChannelType {
	if yes {
		return t
	}
	return wsstream.IgnoreChannel
}

// endOf is what the error channel says of an end, in the words that clients hear from the library's servers. (Pure.)
func endOf(err error, doing string) metav1.Status {
	if err == nil {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	if exit, ok := err.(utilexec.ExitError); ok && exit.Exited() {
		return metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: "command terminated with non-zero exit code: " + exit.Error(),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(exit.ExitStatus())}}}}
	}
	return apierrors.NewInternalError(fmt.Errorf("%s: %w", doing, err)).ErrStatus
}

// readSizes hands on the sizes of the client's window until there are no more. Of those that nobody took in time it keeps the last, so
// that a process without a terminal does not hold up what else the client says.
func readSizes(from io.Reader, to chan remotecommand.TerminalSize) {
	defer close(to)
	for d := json.NewDecoder(from); ; {
		var size remotecommand.TerminalSize
		if d.Decode(&size) != nil {
			_, _ = io.Copy(io.Discard, from) // what is no size holds up nothing either
			return
		}
		select {
		case <-to:
		default:
		}
		to <- size
	}
}

// output is a channel to the client. The library makes every message anew, which for much output is much garbage, and a collection in the
// middle of it; here one piece of memory is used again.
type output struct {
	conn    *guardedConn
	channel byte

	mu      sync.Mutex
	message []byte
}

// Write implements io.Writer: p is a message of its own.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.message = append(append(frameHead(o.message[:0], len(p)+1), o.channel), p...)
	// As the library does: it takes a connection without messages for one that is forgotten.
	if err := o.conn.SetDeadline(time.Now().Add(streamIdle)); err != nil {
		return 0, err
	}
	if _, err := o.conn.Write(o.message); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements io.Closer. A channel to the client has no end of its own.
func (*output) Close() error { return nil }

// frameHead appends the head of an unmasked binary message in one frame (RFC 6455, 5.2).
func frameHead(to []byte, size int) []byte {
	const finalBinary = 0x82
	switch {
	case size < 126:
		return append(to, finalBinary, byte(size))
	case size < 1<<16:
		return binary.BigEndian.AppendUint16(append(to, finalBinary, 126), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(to, finalBinary, 127), uint64(size))
}

// maxInbox bounds what is held of a client's input.
const maxInbox = 1 << 20

// inbox holds input that the process has not read yet. All channels come over one connection, and while one of them is not read, a
// change of the window's size is not heard, nor that the client is gone; so for a while it is read on behalf of the process.
type inbox struct {
	mu      sync.Mutex
	changed sync.Cond
	held    bytes.Buffer
	ended   bool // nothing more comes
	stopped bool // nobody reads any more
}

func newInbox() *inbox {
	b := &inbox{}
	b.changed.L = &b.mu
	return b
}

// Write implements io.Writer. It waits while there is too much; when nobody reads any more it drops what comes: a socket that is
// closed with something unread in it may take the last output with it.
func (b *inbox) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.stopped && b.held.Len() >= maxInbox {
		b.changed.Wait()
	}
	if !b.stopped {
		b.held.Write(p)
	}
	b.changed.Broadcast()
	return len(p), nil
}

// Read implements io.Reader.
func (b *inbox) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.held.Len() == 0 && !b.ended && !b.stopped {
		b.changed.Wait()
	}
	defer b.changed.Broadcast()
	return b.held.Read(p) // io.EOF when there is nothing
}

func (b *inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.changed.Broadcast()
}

func (b *inbox) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped, b.held = true, bytes.Buffer{}
	b.changed.Broadcast()
}

// lingering is how long a client may take to close its connection after it was told the end.
const lingering = 5 * time.Second

// endGuard sees to the end of a connection. The library closes each as one that has come to its normal end (RFC 6455, 1000), which clients
// take for exit code 0: one that ends before told is set is closed as an error (1011). And it closes at once; what a TCP connection has
// not sent then is lost if the client says something meanwhile: one that was told the end is closed when the client has closed it, too.
type endGuard struct {
	http.ResponseWriter
	told atomic.Bool
	conn *guardedConn
}

// over waits until the connection is closed.
func (g *endGuard) over() { <-g.conn.closed }

// Unwrap is for http.ResponseController.
func (g *endGuard) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// Hijack implements http.Hijacker.
func (g *endGuard) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(g.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	g.conn = &guardedConn{Conn: conn, told: &g.told, closed: make(chan struct{})}
	return g.conn, bufio.NewReadWriter(rw.Reader, bufio.NewWriter(g.conn)), nil
}

// guardedConn is closed by the library three times: when the process has ended, when it cannot be read any more, and after both.
type guardedConn struct {
	net.Conn
	told   *atomic.Bool
	said   atomic.Bool // the half that the client hears is closed
	write  sync.Mutex  // a message goes out in one piece: the library answers pings meanwhile
	closed chan struct{}
	half   sync.Once
	whole  sync.Once
}

// Close implements io.Closer. The first time, it closes the half that the client hears.
func (c *guardedConn) Close() (err error) {
	wait := false
	c.half.Do(func() {
		if c.told.Load() {
			c.said.Store(true)
			wait = streams.CloseWrite(c.Conn) == nil
		}
	})
	if wait {
		time.AfterFunc(lingering, func() { _ = c.close() })
		return nil
	}
	return c.close()
}

func (c *guardedConn) close() (err error) {
	c.whole.Do(func() {
		err = c.Conn.Close()
		close(c.closed)
	})
	return err
}

// A server's close frames, which the library writes at once.
var (
	closedNormally = []byte{0x88, 2, 0x03, 0xe8}
	closedInError  = []byte{0x88, 2, 0x03, 0xf3}
)

// Write implements io.Writer. When all is said, the library still answers pings; that it cannot is no reason to close the other half: what
// the client has not read yet would go with it.
func (c *guardedConn) Write(p []byte) (int, error) {
	if c.said.Load() {
		return len(p), nil
	}
	if !c.told.Load() && bytes.Equal(p, closedNormally) {
		p = closedInError
	}
	c.write.Lock()
	defer c.write.Unlock()
	return c.Conn.Write(p)
}
