// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/union"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/figures"
	"github.com/wherryproject/wherry/internal/streams"
)

// closeWait is how long Close waits for handlers whose connections it has closed.
const closeWait = 5 * time.Second

// Config is what a server is made of. Host, CRI, Logs, Certificate and ClientCAs are required.
type Config struct {
	Host     Host
	CRI      *cri.Client
	Figures  *figures.Reader // of what pods use; nil: one of the server's own
	Logs     LogReader
	NodeName string
	Attach   Attacher // of the runtime, if it keeps output for those who attach; nil: through the CRI
	Exec     Execer   // of the runtime, if it runs commands without the CRI's streams; nil: through the CRI
	// Streams attaches to running containers whose output is not kept, if the runtime can do it without the CRI's
	// streams; nil: through the CRI.
	Streams Streams
	// Forward reaches pods' ports without the CRI's streams, if the runtime can; nil: through the CRI.
	Forward Forwarder

	Certificate tls.Certificate // what the server shows
	// GetCertificate is asked at every connection, in place of Certificate, where that is renewed.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Conns          *connlimit.Limiter // keeps connections within limits; nil: there are none
	ReadOnlyConns  *connlimit.Limiter // those to the read-only port: strangers must not push out who comes to the other
	ClientCAs      *x509.CertPool     // who signs its clients' certificates
	MinTLSVersion  uint16             // 0: TLS 1.3
	CipherSuites   []uint16           // of TLS 1.2; none: Go's
	// Tokens knows clients by bearer tokens; nil: a client certificate is required.
	Tokens authenticator.Request
	// Authorize decides what a user may do with this node: resource nodes, subresource proxy, pods, log, metrics,
	// stats, configz or healthz. It is the method of an authorizer.Authorizer. Nil: the group system:masters may do
	// everything, others nothing.
	Authorize func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error)

	ImageExec ImageExec // /imageExec/{namespace}/{pod}; nil: 501
	// NoImageExec says why there is none, if it is not for want of a runtime that can.
	NoImageExec string
	Timeline    http.Handler // /timeline/{namespace}/{pod}; nil: 404
	Metrics     http.Handler // /metrics; nil: 404
	Probes      http.Handler // /metrics/probes; nil: 404
	Configz     http.Handler // /configz; nil: 404
	Checkpoints string       // the folder of containers' checkpoints; "": there are none
	// the node's part of /stats/summary; nil: its name only
	NodeStats func(context.Context) (statsapi.NodeStats, error)
	// what pods have on disk for /stats/summary; nil: only their layers are reported
	PodDisk func(*corev1.Pod) PodDisk
	// Cgroups reads a pod's cgroup, and those of its containers by their ids, for /metrics/cadvisor; nil: nothing is
	// known of them
	Cgroups func(pod *corev1.Pod, containers []string) (cgroup.Figures, map[string]cgroup.Figures)
	Health  func() error // what /healthz says; nil: always ok
	LogDir  string       // of pods, what /logs/ shows without SystemLogs; empty: 404
	// SystemLogs has files of the machine at /logs/, and answers at /logs/?query=; nil: these are passed over
	SystemLogs http.Handler
	Logger     *slog.Logger // nil: silent
}

// Server serves the kubelet's HTTPS API. Make it with New, then Start it once; Close ends it.
type Server struct {
	config   Config
	authn    authenticator.Request
	logs     *os.Root // nil without LogDir
	read     readLogs
	logger   *slog.Logger
	http     *http.Server
	local    *http.Server // nil until StartLocal
	readOnly *http.Server // nil until StartReadOnly
	cancel   context.CancelFunc
	conns    *conns
	programs programs
	handlers sync.WaitGroup // requests being answered
	serving  sync.WaitGroup
}

// New checks the configuration and opens LogDir.
func New(c Config) (*Server, error) {
	switch {
	case c.Host == nil || c.CRI == nil || c.Logs == nil:
		return nil, errors.New("kubelet API: Host, CRI and Logs are required")
	case len(c.Certificate.Certificate) == 0 && c.GetCertificate == nil:
		return nil, errors.New("kubelet API: a serving certificate is required")
	case c.ClientCAs == nil:
		return nil,
			errors.New("kubelet API: the CA of client certificates is required: without it anybody could run commands in pods")
	}
	s := &Server{config: c, logger: c.Logger, conns: newConns()}
	if s.config.Figures == nil {
		s.config.Figures = figures.New(c.CRI.Runtime)
	}
	if s.config.Authorize == nil {
		s.config.Authorize = mastersOnly
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if c.LogDir != "" {
		root, err := os.OpenRoot(c.LogDir)
		if err != nil {
			return nil, fmt.Errorf("kubelet API: folder for /logs/: %w", err)
		}
		s.logs = root
	}
	known := x509request.New(x509.VerifyOptions{Roots: c.ClientCAs,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		x509request.CommonNameUserConversion)
	if c.Tokens == nil {
		s.authn = group.NewAuthenticatedGroupAdder(known)
	} else {
		s.authn = group.NewAuthenticatedGroupAdder(union.New(known, c.Tokens))
	}
	if c.MinTLSVersion == 0 {
		c.MinTLSVersion = tls.VersionTLS13
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.http = &http.Server{
		Handler:           limitConns(c.Conns, s.counted(s.guarded(s.routes()))),
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       90 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(errorLog{s.logger}, "", 0),
		TLSConfig: &tls.Config{
			GetCertificate: c.GetCertificate,
			MinVersion:     c.MinTLSVersion,
			CipherSuites:   c.CipherSuites,
			// Asked for, and verified by the handler: so a client without one reads 401 and why, not "bad certificate".
			ClientAuth: tls.RequestClientCert,
		},
	}
	if c.GetCertificate == nil {
		s.http.TLSConfig.Certificates = []tls.Certificate{c.Certificate}
	}
	return s, nil
}

// Start serves on l, which it owns from now on, and returns at once.
func (s *Server) Start(l net.Listener) {
	s.serving.Go(func() {
		if s.config.Conns != nil {
			l = s.config.Conns.Listener(l)
		}
		if err := s.http.ServeTLS(streams.Gathering(s.conns.track(l)), "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("kubelet API stopped serving", "address", l.Addr().String(), "err", err)
		}
	})
}

// StartLocal serves on l too, which it owns from now on: connections within this process, all of them of one user,
// without TLS.
func (s *Server) StartLocal(l net.Listener, who user.Info) {
	s.local = &http.Server{
		Handler:           s.http.Handler,
		ReadHeaderTimeout: s.http.ReadHeaderTimeout,
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(s.http.BaseContext(l), localUser{}, who)
		},
		ErrorLog: s.http.ErrorLog,
	}
	s.serving.Go(func() {
		if err := s.local.Serve(s.conns.track(l)); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("kubelet API stopped serving this process", "err", err)
		}
	})
}

// localUser is the key of who is at the other end of a connection within the process.
type localUser struct{}

// authenticate finds out who asks.
func (s *Server) authenticate(r *http.Request) (*authenticator.Response, bool, error) {
	if who, ok := r.Context().Value(localUser{}).(user.Info); ok {
		return &authenticator.Response{User: who}, true, nil
	}
	resp, ok, err := s.authn.AuthenticateRequest(r)
	if s.config.Conns != nil && ok && err == nil {
		s.config.Conns.Authenticated(r, resp.User.GetName())
	}
	return resp, ok, err
}

func limitConns(d *connlimit.Limiter, next http.Handler) http.Handler {
	if d == nil {
		return next
	}
	return d.Handler(next)
}

// Close stops serving and cuts every connection, streams included. The commands and containers at their other ends run
// on. It returns when all handlers have.
func (s *Server) Close() error {
	s.cancel()
	err := s.http.Close()
	if s.local != nil {
		err = errors.Join(err, s.local.Close())
	}
	if s.readOnly != nil {
		err = errors.Join(err, s.readOnly.Close())
	}
	s.conns.close()
	s.serving.Wait()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.handlers.Wait()
	}()
	select {
	case <-done:
	case <-time.After(closeWait):
		err = errors.Join(err, fmt.Errorf("kubelet API: requests still running %s after their connections were closed",
			closeWait))
	}
	if s.logs != nil {
		err = errors.Join(err, s.logs.Close())
	}
	return err
}

// counted lets Close wait for handlers; http.Server does not, and forgets those that took their connection over.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handlers.Add(1)
		defer s.handlers.Done()
		next.ServeHTTP(w, r)
	})
}

// errorLog takes net/http's complaints: handshakes that failed, and the like.
type errorLog struct{ to *slog.Logger }

func (e errorLog) Write(p []byte) (int, error) {
	e.to.Debug("kubelet API connection", "err", string(p))
	return len(p), nil
}
