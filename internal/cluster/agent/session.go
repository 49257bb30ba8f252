// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	debugwire "github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/oneline"
	"github.com/wherryproject/wherry/internal/streams"
)

// streamIdle is how long a connection may be silent.
const streamIdle = 4 * time.Hour

// drainTime is how long a client may take to read what an ended session has said.
const drainTime = 5 * time.Minute

// serveSession runs a debugger.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) {
	var ask wire.Session
	if err := wire.Parse(r.URL.Query(), &ask); err != nil {
		badRequest(w, "%v", err)
		return
	}
	if err := checkSession(ask); err != nil {
		badRequest(w, "%v", err)
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		badRequest(w, "a session is a WebSocket with %s", streams.V5)
		return
	}
	giveBack, ok := s.take(w)
	if !ok {
		return
	}
	defer giveBack()
	child, err := s.start(talk.Ask{Session: &ask, CRISocket: s.socket},
		Streams{In: ask.Stdin, Out: ask.Stdout, Err: ask.Stderr && !ask.TTY, TTY: ask.TTY})
	if err != nil {
		refuse(w, internal(err))
		return
	}
	defer child.End()
	first := firstReport(r.Context(), child)
	switch {
	case first == nil:
		refuse(w, talk.Refusal{Code: http.StatusInternalServerError, Reason: "InternalError",
			Message: endStatus(nil).Message})
		return
	case first.Refused != nil:
		refuse(w, *first.Refused)
		return
	}
	if first.Ready != nil {
		for _, note := range first.Ready.Notes {
			w.Header().Add(debugwire.HeaderNote, oneline.Of(note))
		}
	}
	socket, err := streams.Accept(w, r, streamIdle)
	if err != nil {
		return // it has answered
	}
	join(socket, child)
}

// firstReport is a child's first report, if it comes before the client is gone.
func firstReport(ctx context.Context, c *Child) *talk.Report {
	stop := context.AfterFunc(ctx, c.LetGo)
	defer stop()
	return c.Next()
}

// join joins a client with a child until one of them is gone.
func join(socket *streams.Socket, child *Child) {
	j := connect(socket, child)
	go func() {
		_ = socket.Hear(j.heard) // the client is gone, or cannot be understood
		child.LetGo()
		j.quit()
	}()
	var ended *talk.Ended
	for r := child.Next(); r != nil; r = child.Next() {
		if r.Ended != nil {
			ended = r.Ended
			child.LetGo() // it is to go now, and has a bound to that
		}
	}
	// A client that does not read keeps what is left, and one of the node's slots, no longer than this; nor does a
	// process that nothing ends keep them, by what it holds of the streams.
	stalled := time.AfterFunc(drainTime, func() {
		socket.Fail()
		child.Close()
	})
	defer stalled.Stop()
	j.finish()
	text, err := json.Marshal(endStatus(ended))
	if err != nil {
		socket.Fail()
		return
	}
	socket.End(streams.Status, text)
}
