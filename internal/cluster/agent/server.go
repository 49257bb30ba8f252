// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// Server answers the API. Make one with [NewServer].
type Server struct {
	start   func(talk.Ask, Streams) (*Child, error)
	running Running
	socket  string // of the node's runtime; empty: the usual places
	slots   *slots
}

// Running knows the sessions of the machine.
type Running interface {
	// List are those of a pod.
	List(wire.Pod) ([]wire.Running, error)
	// Stop ends those of a pod, or one of them.
	Stop(wire.Stop) error
}

// NewServer makes an agent's server. start starts the process of a session.
func NewServer(start func(talk.Ask, Streams) (*Child, error), running Running, criSocket string) *Server {
	return &Server{start: start, running: running, socket: criSocket, slots: newSlots()}
}

// maxHeader bounds a request's head: a command is in its query.
const maxHeader = 1 << 20

// HTTP is the server of its requests, which are on connections with [TLS].
func (s *Server) HTTP() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.PathSession, s.serveSession)
	mux.HandleFunc("GET "+wire.PathEvidence, s.serveEvidence)
	mux.HandleFunc("GET "+wire.PathSessions, s.serveList)
	mux.HandleFunc("DELETE "+wire.PathSessions, s.serveStop)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, talk.Refusal{Code: http.StatusNotFound, Reason: "NotFound",
			Message: fmt.Sprintf("this agent does not know %s %s: it may be older than the API", r.Method, r.URL.Path)})
	})
	return &http.Server{Handler: mux, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxHeader, ConnState: (&strangers{}).state}
}

// asked reads a request and judges it. Where ok is false, it has answered.
func asked[T any](w http.ResponseWriter, r *http.Request, check func(T) error) (request T, ok bool) {
	err := wire.Parse(r.URL.Query(), &request)
	if err == nil {
		err = check(request)
	}
	if err != nil {
		badRequest(w, "%v", err)
	}
	return request, err == nil
}

// take takes a slot for what is asked for.
func (s *Server) take(ask talk.Ask) (giveBack func(), err error) {
	if ask.Session != nil {
		return s.slots.session(ask.Session.By)
	}
	return s.slots.look()
}

// run starts a process in one of the slots and hears what it says first. If that grants what is asked for, serve
// answers and goes on with the process, which ends after it; else run has answered.
func (s *Server) run(w http.ResponseWriter, r *http.Request, ask talk.Ask, streams Streams,
	serve func(child *Child, first *talk.Report)) {
	giveBack, err := s.take(ask)
	if err != nil {
		refuse(w, talk.Refusal{Code: http.StatusTooManyRequests, Reason: "TooManyRequests", Message: err.Error()})
		return
	}
	defer giveBack()
	ask.CRISocket = s.socket
	child, err := s.start(ask, streams)
	if err != nil {
		refuse(w, internal(err))
		return
	}
	defer child.End()
	switch first := firstReport(r.Context(), child); {
	case first == nil:
		refuse(w, talk.Refusal{Code: http.StatusInternalServerError, Reason: "InternalError",
			Message: endStatus(nil).Message})
	case first.Refused != nil:
		refuse(w, *first.Refused)
	default:
		serve(child, first)
	}
}

// firstReport is a child's first report, if it comes before the client is gone.
func firstReport(ctx context.Context, c *Child) *talk.Report {
	stop := context.AfterFunc(ctx, c.LetGo)
	defer stop()
	return c.Next()
}

// serveEvidence answers with what is known of a pod's containers.
func (s *Server) serveEvidence(w http.ResponseWriter, r *http.Request) {
	pod, ok := asked(w, r, checkPod)
	if !ok {
		return
	}
	s.run(w, r, talk.Ask{Evidence: &pod}, Streams{}, func(_ *Child, first *talk.Report) {
		if first.Evidence == nil {
			refuse(w, internal(errors.New("the session's process on the node sent an unexpected reply")))
			return
		}
		answerText(w, http.StatusOK, first.Evidence)
	})
}

// serveList lists a pod's sessions.
func (s *Server) serveList(w http.ResponseWriter, r *http.Request) {
	pod, ok := asked(w, r, checkPod)
	if !ok {
		return
	}
	all, err := s.running.List(pod)
	if err != nil {
		refuse(w, internal(err))
		return
	}
	if all == nil {
		all = []wire.Running{}
	}
	answer(w, http.StatusOK, wire.RunningList{Items: all})
}

// stopTime is how long an answer waits for sessions to end, which is less than who asks waits for it.
const stopTime = 25 * time.Second

// serveStop ends sessions of a pod.
func (s *Server) serveStop(w http.ResponseWriter, r *http.Request) {
	stop, ok := asked(w, r, func(stop wire.Stop) error { return checkPod(stop.Pod) })
	if !ok {
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- s.running.Stop(stop) }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(stopTime):
		refuse(w, talk.Refusal{Code: http.StatusGatewayTimeout, Reason: "Timeout",
			Message: fmt.Sprintf("the session did not end within %s: its processes are being killed; look again",
				stopTime)})
		return
	}
	none := (*noSession)(nil)
	switch {
	case errors.As(err, &none):
		refuse(w, talk.Refusal{Code: http.StatusNotFound, Reason: "NotFound", Message: none.Error()})
	case err != nil:
		refuse(w, internal(err))
	default:
		answer(w, http.StatusOK, newStatus(status{Status: "Success"}))
	}
}

func internal(err error) talk.Refusal {
	return talk.Refusal{Code: http.StatusInternalServerError, Reason: "InternalError", Message: err.Error()}
}
