// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	debugwire "github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/oneline"
	"github.com/wherryproject/wherry/internal/streams"
)

// streamIdle is how long a connection may be silent.
const streamIdle = 4 * time.Hour

// drainTime is how long a client may take to read the output of an ended session.
const drainTime = 5 * time.Minute

// serveSession runs a debugger.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) {
	ask, ok := asked(w, r, checkSession)
	if !ok {
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		badRequest(w, "a session is a WebSocket with %s", streams.V5)
		return
	}
	own := Streams{In: ask.Stdin, Out: ask.Stdout, Err: ask.Stderr && !ask.TTY, TTY: ask.TTY}
	s.run(w, r, talk.Ask{Session: &ask}, own, func(child *Child, first *talk.Report) {
		if first.Ready != nil {
			for _, note := range first.Ready.Notes {
				w.Header().Add(debugwire.HeaderNote, oneline.Of(note))
			}
		}
		if socket, err := streams.Accept(w, r, streamIdle); err == nil { // else it has answered
			join(socket, child)
		}
	})
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
