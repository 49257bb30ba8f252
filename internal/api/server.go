// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/admission"
	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/authz"
	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/customresources"
	"github.com/wherryproject/wherry/internal/api/filters"
	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/resourcequota"
	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/debug/session"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/timeline"
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
	cfg       *settled
	log       *slog.Logger
	schemes   *registry.Schemes
	stores    registry.Stores
	addresses *kinds.Addresses
	tokens    *authn.AccountTokens
	authn     *authn.Authenticators

	ca         *pki.CA
	kubeletTLS *tls.Config
	// kubeletCert is what kubeletTLS shows.
	kubeletCert *pki.Renewing
	kubelets    *connect.Kubelets
	proxies     *http.Transport
	nodePorts   *http.Transport

	listener net.Listener
	loopback *loopback
	generic  *genericapiserver.GenericAPIServer
	custom   *customresources.Server
	ready    chan struct{}

	etcdHealth func() error // nil: etcd answers

	insiders    *authn.Insiders
	authorizers *authz.Authorizers

	recorder  *audit.Recorder
	flow      *filters.FlowControl // nil: off
	admission *admission.Control
	quotas    *resourcequota.Quotas
	debugger  *session.Debugger
}

// New prepares a server: certificates, the port (taken from here on), the connections to etcd, every route. It fails
// with an error for the user when the port is taken, etcd does not answer or the configuration makes no sense. A server
// that is not going to Run must be given a cancelled context to Run, which frees everything.
func New(ctx context.Context, cfg Config) (_ *Server, err error) {
	settled, err := cfg.settle()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: settled, log: settled.Logger.With("component", "apiserver"), ready: make(chan struct{})}
	RouteKlog(s.log)
	settled.Features.Publish()
	defer func() {
		if err != nil {
			s.free()
		}
	}()
	if s.schemes, err = registry.NewSchemes(); err != nil {
		return nil, err
	}
	if err := s.openRecorder(); err != nil {
		return nil, err
	}
	if s.addresses, err = kinds.NewAddresses(settled.services); err != nil {
		return nil, err
	}
	if err := s.loadKeys(); err != nil {
		return nil, err
	}
	if s.listener, err = listen(settled); err != nil {
		return nil, err
	}
	if settled.Door != nil {
		s.listener = settled.Door.Listener(s.listener)
	}
	if s.loopback, err = newLoopback(settled.Inside); err != nil {
		return nil, err
	}
	b := newBackend(s.schemes, settled.Config)
	if s.stores, err = registry.OpenStores(b, kinds.All(settled.Features)); err != nil {
		return nil, err
	}
	s.tokens.Lookup = s.stores
	s.quotas = resourcequota.New(s.stores, s.schemes, s.log)
	s.authorizers = authz.New(s.stores)
	s.admission, err = admission.New(settled.admission, admission.Host{
		Stores: s.stores, Schemes: s.schemes, Audiences: settled.Authentication.APIAudiences,
		Quotas: s.quotas.Admission(), Locate: s.kubelets.Locate, Log: s.log, Authorizer: s.authorizing,
		Connection: s.connection,
	})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.assemble(b); err != nil {
		return nil, err
	}
	return s, s.install()
}

func (s *Server) loadKeys() (err error) {
	if s.ca, err = pki.LoadOrCreate(s.cfg.pki, "wherry-ca"); err != nil {
		return err
	}
	if err := os.Chmod(s.cfg.pki, 0o700); err != nil { // of a folder that an earlier version made
		return fmt.Errorf("folder of keys: %w", err)
	}
	if s.tokens, err = authn.LoadAccountTokens(s.cfg.pki, s.cfg.Authentication); err != nil {
		return err
	}
	if s.kubeletTLS, err = s.newKubeletTLS(); err != nil {
		return err
	}
	s.kubelets = connect.NewKubelets(func(ctx context.Context,
		name string) (*corev1.Node, error) {
		return s.stores.Node(ctx, name)
	}, s.kubeletTLS)
	s.kubeletCert.OnRenewal(s.kubelets.Close) // idle connections, which go on showing the one before
	s.proxies, s.nodePorts = connect.NewProxyTransport(), connect.NewNodePortTransport()
	return nil
}

func listen(s *settled) (net.Listener, error) {
	if s.Inside != nil {
		return s.Inside.Listener, nil
	}
	address := net.JoinHostPort(s.BindAddress, strconv.Itoa(s.SecurePort))
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d is in use: stop the program that uses it, or choose another port: %w",
			s.SecurePort, err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d needs root: choose a port above 1023: %w", s.SecurePort, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

// assemble makes the generic server: chain of handlers, authentication, authorisation, admission, OpenAPI, health.
func (s *Server) assemble(b *registry.Backend) error {
	c := genericapiserver.NewConfig(s.schemes.Codecs)
	c.EffectiveVersion = newEffectiveVersion()
	cert, err := s.newServingCert()
	if err != nil {
		return err
	}
	clientCA, err := dynamiccertificates.NewStaticCAContent("client-ca", s.ca.CertPEM())
	if err != nil {
		return err
	}
	c.SecureServing = &genericapiserver.SecureServingInfo{Listener: s.listener, Cert: cert, ClientCA: clientCA}
	c.ExternalAddress = net.JoinHostPort(s.cfg.host(), strconv.Itoa(s.Port()))
	c.LoopbackClientConfig = s.loopback.config

	c.Authentication.APIAudiences = s.cfg.Authentication.APIAudiences
	if s.authn, err = authn.New(s.cfg.Authentication, s.cfg.pki, s.cfg.TokenAuthFile, s.ca, s.tokens); err != nil {
		return err
	}
	s.insiders = authn.NewInsiders(c.Authentication.APIAudiences)
	c.Authentication.Authenticator = filters.AtDoor(s.cfg.Door, s.insiders.Before(s.authn.Request))
	c.Authorization.Authorizer = authorizer.AuthorizerFunc(s.authorizers.Authorize)
	c.RequestInfoResolver = authz.WithStreamVerbs(genericapiserver.NewRequestInfoResolver(c))
	c.AdmissionControl = s.admission.Plugins
	s.putOnRecord(c)

	names := apiopenapi.NewDefinitionNamer(s.schemes.External)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(registry.Definitions, names)
	c.OpenAPIConfig.Info.Title = "Kubernetes"
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(registry.Definitions, names)
	c.OpenAPIV3Config.Info.Title = "Kubernetes"

	c.LongRunningFunc = genericfilters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward",
			timeline.Subresource))
	c.ShutdownWatchTerminationGracePeriod = watchDrainTime
	if err := s.harden(c); err != nil {
		return err
	}
	if err := s.addHealth(c, b); err != nil {
		return err
	}
	c.AddPostStartHookOrDie("bootstrap", func(ctx genericapiserver.PostStartHookContext) error {
		if err := s.bootstrap(ctx); ctx.Err() == nil {
			return err
		}
		return nil // asked to stop meanwhile; the library would end the whole process for an error
	})

	started := time.Now()
	c.AddPostStartHookOrDie("late-records", func(ctx genericapiserver.PostStartHookContext) error {
		s.debugger.RecordLate(ctx, started)
		return nil
	})

	c.EquivalentResourceRegistry = admission.NewEquivalents()
	c.AddPostStartHookOrDie("admission", func(ctx genericapiserver.PostStartHookContext) error {
		if err := s.admission.Start(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
	s.custom, err = customresources.New(c, customresources.Outer{Backend: b, Stores: s.stores,
		Client: s.loopback.config, Log: s.log, Handler: func() http.Handler { return s.generic.Handler.Director }})
	if err != nil {
		return err
	}
	s.generic, err = c.Complete(nil).New("wherry", s.custom.Generic())
	if err != nil {
		return err
	}
	s.generic.ShutdownTimeout = drainTime
	return s.custom.Merge(s.generic)
}

// openRecorder opens the audit log. It comes early: a policy that makes no sense refuses the start before anything is
// made.
func (s *Server) openRecorder() (err error) {
	if s.cfg.Audit == nil {
		s.recorder = &audit.Recorder{}
		return nil
	}
	s.recorder, err = audit.Open(*s.cfg.Audit, s.cfg.DataDir)
	return err
}

// putOnRecord gives the handlers the audit log.
func (s *Server) putOnRecord(c *genericapiserver.Config) {
	if s.recorder.Backend != nil {
		c.AuditBackend, c.AuditPolicyRuleEvaluator = s.recorder.Backend, s.recorder.Policy
	}
}

// connection is how admission reaches this server, once it is assembled.
func (s *Server) connection() (admission.Connection, error) {
	if s.generic == nil {
		return admission.Connection{}, errors.New("the server is still starting")
	}
	return admission.Connection{Client: s.loopback.config, Stores: s.stores, Authorizer: s.generic.Authorizer,
		Version: s.generic.EffectiveVersion}, nil
}

// authorizing is who decides about rights, once the server is assembled.
func (s *Server) authorizing() authorizer.UnconditionalAuthorizer { return s.generic.Authorizer }

func (s *Server) addHealth(c *genericapiserver.Config, b *registry.Backend) error {
	check := b.HealthInside
	if b.Etcd != nil {
		// Not the library's look at its log, which is one for the whole program: it would tell of another server's
		// time.
		ping := []healthz.HealthChecker{healthz.PingHealthz}
		c.HealthzChecks, c.ReadyzChecks, c.LivezChecks = ping, slices.Clone(ping), slices.Clone(ping)
	} else {
		var err error
		if check, err = factory.CreateHealthCheck(b.Config, c.DrainedNotify()); err != nil {
			return err
		}
	}
	s.etcdHealth = check
	c.AddHealthChecks(healthz.NamedCheck("etcd", func(*http.Request) error { return check() }))
	return nil
}

// Ready is closed when the server is ready: /readyz says 200 and the namespaces every cluster has are there.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Port is the port the server listens on.
func (s *Server) Port() int {
	if a, ok := s.listener.Addr().(*net.TCPAddr); ok {
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
func (s *Server) Loopback() *rest.Config { return rest.CopyConfig(s.loopback.config) }

// CA signs the certificates of this server, its clients and its node.
func (s *Server) CA() *pki.CA { return s.ca }
