// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/cluster/debugapi/options"
	"github.com/wherryproject/wherry/internal/cluster/debugapi/rights"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/streams"
)

// streaming serves pods/shell, pods/exec and pods/files.
type streaming struct {
	server *Server
	empty  runtime.Object
	as     string
}

var (
	_ rest.Connecter       = streaming{}
	_ rest.StorageMetadata = streaming{}
)

// New implements rest.Storage.
func (c streaming) New() runtime.Object { return c.empty.DeepCopyObject() }

// Destroy implements rest.Storage.
func (streaming) Destroy() {}

// ProducesMIMETypes implements rest.StorageMetadata.
func (c streaming) ProducesMIMETypes(string) []string { return []string{"*/*"} }

// ProducesObject implements rest.StorageMetadata.
func (streaming) ProducesObject(string) any { return "" }

// ConnectMethods implements rest.Connecter.
func (streaming) ConnectMethods() []string { return []string{http.MethodGet, http.MethodPost} }

// NewConnectOptions implements rest.Connecter.
func (c streaming) NewConnectOptions() (runtime.Object, bool, string) { return c.New(), false, "" }

// Connect implements rest.Connecter: admission has seen the options.
func (c streaming) Connect(ctx context.Context, name string, opts runtime.Object, r rest.Responder) (http.Handler,
	error) {
	pod, err := c.server.pod(ctx, name)
	if err != nil {
		return nil, err
	}
	session, err := c.server.session(pod, opts)
	if err != nil {
		return nil, err
	}
	folder, err := c.server.claimed(ctx, pod)
	if err != nil {
		return nil, err
	}
	needs := rights.Needs(pod, rights.Request{As: c.as, Profile: session.Profile, Writable: session.Writable,
		Claimed: folder, Joins: c.as == wire.Exec && session.Container != ""})
	if err := c.server.allowed(ctx, name, needs); err != nil {
		return nil, err
	}
	agent, err := c.server.agents.of(ctx, pod, readyTime)
	if err != nil {
		return nil, err
	}
	user, _ := request.UserFrom(ctx) // allowed has seen it
	session.By, session.ID = user.GetName(), newID()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if c.as == wire.Files && !websocket.IsWebSocketUpgrade(req) && req.Header.Get("Upgrade") == "" {
			c.server.archive(w, req, pod, agent, session, r)
			return
		}
		c.server.join(w, req, pod, agent, session, r)
	}), nil
}

// session is what the agent is asked for; who asks is not in it yet.
func (s *Server) session(pod *corev1.Pod, opts runtime.Object) (session wire.Session, err error) {
	switch o := opts.(type) {
	case *options.Shell:
		if o.Container, err = container(pod, o.Container); err != nil {
			return session, err
		}
		session, err = o.Session(s.config.Limits)
	case *options.Exec:
		if o.Container != "" {
			if err := known(pod, o.Container); err != nil {
				return session, err
			}
		}
		session, err = o.Session(s.config.Limits)
	case *options.Files:
		if o.Container, err = container(pod, o.Container); err != nil {
			return session, err
		}
		session, err = o.Session(s.config.Limits)
	default:
		return session, apierrors.NewInternalError(fmt.Errorf("options are a %T", opts))
	}
	if err != nil {
		return session, apierrors.NewBadRequest(err.Error())
	}
	session.Pod, session.Order = about(pod), order(pod)
	return session, nil
}

// newID is a session's name, which nobody guesses.
func newID() string {
	var id [6]byte
	_, _ = rand.Read(id[:]) // it does not fail
	return hex.EncodeToString(id[:])
}

// join connects a client with a session that is made for it.
func (s *Server) join(w http.ResponseWriter, req *http.Request, pod, agent *corev1.Pod, session wire.Session,
	r rest.Responder) {
	if err := speaks(req); err != nil {
		r.Error(err)
		return
	}
	done, err := s.open.begin()
	if err != nil {
		r.Error(err)
		return
	}
	defer done()
	answer, err := s.asked(req.Context(), pod, agent, session, req)
	if err != nil {
		r.Error(err)
		return
	}
	defer s.open.stopping(answer.Close)()
	events := s.events.started(pod, session)
	record.Stream(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := answer.Join(w, connect.EarlyReader(req)); err != nil {
			r.Error(apierrors.NewInternalError(err))
		}
	}), events.ended).ServeHTTP(w, req)
}

// asked asks an agent for a session. Where nobody listens, the next one that appears is asked, for readyTime.
func (s *Server) asked(ctx context.Context, pod, agent *corev1.Pod, session wire.Session, client *http.Request) (
	*streams.Answer, error) {
	patience, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		next := s.agents.next()
		answer, err := s.reach.session(ctx, agent, session, client)
		if _, none := errors.AsType[nobody](err); !none {
			return answer, whyNotMade(pod, session.Container, err)
		}
		now, oerr := s.agents.of(patience, pod, readyTime)
		if oerr != nil {
			return nil, err
		}
		if now.UID == agent.UID && now.Status.PodIP == agent.Status.PodIP {
			select {
			case <-next:
			case <-patience.Done():
				return nil, err
			}
		}
		agent = now
	}
}

// speaks refuses a client that speaks another protocol than the agents do.
func speaks(req *http.Request) error {
	if !websocket.IsWebSocketUpgrade(req) {
		return apierrors.NewBadRequest("this needs WebSocket; SPDY and plain HTTP will not do: a kubectl of at least version 1.31, or wherry debug, speaks it")
	}
	if !slices.Contains(websocket.Subprotocols(req), streams.V5) {
		return apierrors.NewBadRequest(fmt.Sprintf("the client speaks %q of WebSocket's protocols: %s is needed",
			websocket.Subprotocols(req), streams.V5))
	}
	return nil
}
