// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/streams"
)

// archive answers a plain GET with the archive itself, for clients that speak no WebSocket. kube-apiserver gives such a
// request a minute.
func (s *Server) archive(w http.ResponseWriter, req *http.Request, pod, agent *corev1.Pod, session wire.Session,
	r rest.Responder) {
	if session.Stdin || req.Method != http.MethodGet {
		r.Error(apierrors.NewBadRequest("files go in by WebSocket alone, and come out by that or a GET"))
		return
	}
	done, err := s.open.begin()
	if err != nil {
		r.Error(err)
		return
	}
	defer done()
	conn, err := s.reach.websocket(req.Context(), agent, session)
	if err != nil {
		r.Error(err)
		return
	}
	end := func() { _ = conn.Close() }
	defer end()
	defer s.open.stopping(end)()
	defer context.AfterFunc(req.Context(), end)() // the client has gone
	events := s.events.started(pod, session)
	out := &unpacked{w: w}
	status, err := out.copy(conn)
	events.ended(archiveEnd(status, err))
	switch {
	case err == nil && status.Status == metav1.StatusSuccess && out.begun:
	case out.begun: // what has come is not all: the client must not take it for that
		panic(http.ErrAbortHandler)
	case err != nil:
		r.Error(unreachable(agent, err))
	default:
		words := strings.TrimSpace(out.words.String())
		r.Error(refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, pod.Name, "files of pod %s: %s",
			pod.Name, orElse(words, orElse(status.Message, "nothing has come"))))
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func archiveEnd(status metav1.Status, err error) record.End {
	switch {
	case err != nil:
		return record.End{Message: err.Error()}
	case status.Status == metav1.StatusSuccess:
		return record.End{ExitCode: new(int32)}
	}
	return record.End{Reason: string(status.Reason), Message: status.Message}
}

// unpacked is what comes of a session's streams.
type unpacked struct {
	w     http.ResponseWriter
	begun bool            // something of the archive was written
	words strings.Builder // of the error stream
}

// maxWords bounds what is kept of the error stream.
const maxWords = 4 << 10

// copy writes the session's output until it says how it has ended.
func (u *unpacked) copy(conn *websocket.Conn) (status metav1.Status, err error) {
	for {
		_, message, err := conn.NextReader()
		if err != nil {
			return status, fmt.Errorf("the session was cut off: %w", err)
		}
		channel, err := streams.Channel(message)
		if err != nil {
			continue // an empty message
		}
		switch channel {
		case streams.Stdout:
			if err := u.more(message); err != nil {
				return status, err
			}
		case streams.Stderr:
			_, _ = io.Copy(&u.words, io.LimitReader(message, int64(maxWords-u.words.Len())))
		case streams.Status:
			text, err := io.ReadAll(io.LimitReader(message, maxAnswer))
			if err == nil {
				err = json.Unmarshal(text, &status)
			}
			return status, err
		}
	}
}

// more writes more of the archive; the head goes before its first byte, so that a failure before that is reported as
// one.
func (u *unpacked) more(message io.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := message.Read(buffer)
		if n > 0 {
			if !u.begun {
				u.begun = true
				u.w.Header().Set("Content-Type", "application/x-tar")
			}
			if _, err := u.w.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// websocket asks the agent for a session of which this API is itself the client.
func (r *reach) websocket(ctx context.Context, agent *corev1.Pod, session wire.Session) (*websocket.Conn, error) {
	q, err := wire.Query(session)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	url := to(wire.PathSession, q)
	url.Scheme = "wss"
	var dialed error
	d := &websocket.Dialer{Subprotocols: []string{streams.V5}, HandshakeTimeout: dialTime + handshakeTime,
		NetDialTLSContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
			conn, dialed = r.dial(ctx, agent)
			return conn, dialed
		}}
	conn, resp, err := d.DialContext(ctx, url.String(), nil)
	switch {
	case err == nil:
		return conn, nil
	case dialed != nil:
		return nil, dialed
	case resp != nil:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return nil, refused(agent, resp.StatusCode, body)
	}
	return nil, unreachable(agent, err)
}

// handshakeTime is how long an agent may take to make a session.
const handshakeTime = 2 * time.Minute
