// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/admission"
	"github.com/wherryproject/wherry/internal/api/aggregation"
	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/authz"
	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/customresources"
	"github.com/wherryproject/wherry/internal/api/documents"
	"github.com/wherryproject/wherry/internal/api/filters"
	"github.com/wherryproject/wherry/internal/api/firsts"
	"github.com/wherryproject/wherry/internal/api/klogs"
	"github.com/wherryproject/wherry/internal/api/nodenetwork"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/resourcequota"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/api/serviceips"
	"github.com/wherryproject/wherry/internal/api/serviceips/keeper"
	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/pki"
)

const (
	// drainTime is how long a stopping server waits for requests and watches that are under way.
	drainTime = 3 * time.Second
	// watchDrainTime is how long open watches get to end by themselves, within drainTime.
	watchDrainTime  = time.Second
	minWatchSeconds = 1800
)

// Server is the API server of one data folder. Make it with New, serve with Run.
type Server struct {
	cfg *completed
	log *slog.Logger

	up    []component // what was started, in order
	ready chan struct{}

	data   data
	who    who
	judges judges
	ways   ways
	served served
}

// data is what is stored, and how.
type data struct {
	backend   *registry.Backend
	schemes   *schemes.Schemes
	stores    registry.Stores
	addresses *serviceips.Addresses
	keeper    *keeper.Keeper // of the objects beside them
	nodePorts *serviceips.NodePorts
	health    func() error // nil: etcd answers
}

// who is by what the server knows others, and they know it.
type who struct {
	ca          *pki.CA
	kubeletCert *pki.Renewing // shown to nodes
	front       *pki.CA       // signs frontCert, and nothing else
	frontCert   *pki.Renewing // shown to other API servers, which believe its bearer who asks
	tokens      *authn.AccountTokens
	loopback    *authn.LoopbackUsers
	requests    *authn.Authenticators
}

// judges decide what is done.
type judges struct {
	rights    *authz.Authorizers
	admission *admission.Control
	quotas    *resourcequota.Quotas
}

// ways are those by which clients come in and by which the server reaches nodes and pods.
type ways struct {
	listener net.Listener
	loopback *loopback

	kubelets  *connect.Kubelets
	proxies   *http.Transport
	nodePorts *http.Transport
}

// served is what answers.
type served struct {
	generic     *genericapiserver.GenericAPIServer
	openAPI     documents.Config
	custom      *customresources.Server
	aggregation *aggregation.Aggregator
	debugging   debugging
	flow        *filters.FlowControl // nil: off
	nodeNetwork *nodenetwork.Handler
	recorder    *audit.Recorder
}

// New prepares a server: certificates, the port (taken from here on), the connections to etcd, every route. It fails
// with an error for the user when the port is taken, etcd does not answer or the configuration makes no sense. A server
// that is not going to Run must be given a cancelled context to Run, which frees everything.
func New(ctx context.Context, cfg Config) (*Server, error) {
	completed, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: completed, log: completed.Logger.With("component", "apiserver"), ready: make(chan struct{})}
	klogs.Route(s.log)
	completed.Features.Publish()
	if err := s.start(s.components(ctx)); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

// Ready is closed when the server is ready: /readyz says 200 and the namespaces every cluster has are there.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Port is the port the server listens on.
func (s *Server) Port() int {
	if a, ok := s.ways.listener.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return s.cfg.SecurePort
}

// URL is where clients on this machine reach the server.
func (s *Server) URL() string {
	return "https://" + net.JoinHostPort(s.cfg.host(), strconv.Itoa(s.Port()))
}

// Loopback is a client configuration for this process: in memory, a member of system:masters. The caller may change its
// copy.
func (s *Server) Loopback() *rest.Config { return rest.CopyConfig(s.ways.loopback.config) }

// Firsts reports when the first object of a kind is stored.
func (s *Server) Firsts() *firsts.Board { return s.data.backend.Firsts }

// ServiceNetworks are the networks in which services may have addresses; the channel is closed when they have changed.
func (s *Server) ServiceNetworks() ([]netip.Prefix, <-chan struct{}) { return s.data.addresses.Known() }

// CA signs the certificates of this server, its clients and its node.
func (s *Server) CA() *pki.CA { return s.who.ca }
