// SPDX-License-Identifier: Apache-2.0

package agent

import (
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
	slots   chan struct{}
}

// Running knows the sessions of the machine.
type Running interface {
	// List are those of a pod.
	List(wire.Pod) ([]wire.Running, error)
	// Stop ends those of a pod, or one of them.
	Stop(wire.Stop) error
}

// mostSessions bounds the sessions and looks that run at once: each is a process of some 30 MiB, which is the
// machine's.
const mostSessions = 32

// NewServer makes an agent's server. start starts the process of a session.
func NewServer(start func(talk.Ask, Streams) (*Child, error), running Running, criSocket string) *Server {
	return &Server{start: start, running: running, socket: criSocket, slots: make(chan struct{}, mostSessions)}
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
		MaxHeaderBytes: maxHeader}
}

// take takes one of the slots; what it returns gives it back. Without one it has answered.
func (s *Server) take(w http.ResponseWriter) (giveBack func(), ok bool) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, true
	default:
		refuse(w, talk.Refusal{Code: http.StatusTooManyRequests, Reason: "TooManyRequests",
			Message: fmt.Sprintf("%d debug sessions run on this node: end one of them, or wait", mostSessions)})
		return nil, false
	}
}

// serveEvidence tells what is known of a pod's containers.
func (s *Server) serveEvidence(w http.ResponseWriter, r *http.Request) {
	var pod wire.Pod
	if err := wire.Parse(r.URL.Query(), &pod); err != nil {
		badRequest(w, "%v", err)
		return
	}
	if err := checkPod(pod); err != nil {
		badRequest(w, "%v", err)
		return
	}
	giveBack, ok := s.take(w)
	if !ok {
		return
	}
	defer giveBack()
	child, err := s.start(talk.Ask{Evidence: &pod, CRISocket: s.socket}, Streams{})
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
	case first.Refused != nil:
		refuse(w, *first.Refused)
	case first.Evidence != nil:
		answer(w, http.StatusOK, first.Evidence)
	default:
		refuse(w, internal(fmt.Errorf("the process on the node says what was not asked")))
	}
}

// serveList lists a pod's sessions.
func (s *Server) serveList(w http.ResponseWriter, r *http.Request) {
	var pod wire.Pod
	if err := wire.Parse(r.URL.Query(), &pod); err != nil {
		badRequest(w, "%v", err)
		return
	}
	if err := checkPod(pod); err != nil {
		badRequest(w, "%v", err)
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

// serveStop ends sessions of a pod.
func (s *Server) serveStop(w http.ResponseWriter, r *http.Request) {
	var stop wire.Stop
	if err := wire.Parse(r.URL.Query(), &stop); err != nil {
		badRequest(w, "%v", err)
		return
	}
	if err := checkPod(stop.Pod); err != nil {
		badRequest(w, "%v", err)
		return
	}
	if err := s.running.Stop(stop); err != nil {
		if none := (*noSession)(nil); asNone(err, &none) {
			refuse(w, talk.Refusal{Code: http.StatusNotFound, Reason: "NotFound", Message: none.Error()})
			return
		}
		refuse(w, internal(err))
		return
	}
	answer(w, http.StatusOK, newStatus(status{Status: "Success"}))
}

func internal(err error) talk.Refusal {
	return talk.Refusal{Code: http.StatusInternalServerError, Reason: "InternalError", Message: err.Error()}
}
