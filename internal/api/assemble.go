// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"

	"github.com/wherryproject/wherry/internal/api/admission/dynamic"
	"github.com/wherryproject/wherry/internal/api/aggregation"
	"github.com/wherryproject/wherry/internal/api/authz"
	"github.com/wherryproject/wherry/internal/api/customresources"
	"github.com/wherryproject/wherry/internal/api/documents"
	"github.com/wherryproject/wherry/internal/api/filters"
	"github.com/wherryproject/wherry/internal/api/health"
	"github.com/wherryproject/wherry/internal/api/nodenetwork"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/timeline"
)

// assemble makes the generic server: chain of handlers, authentication, authorisation, admission, OpenAPI, health.
func (s *Server) assemble() (err error) {
	c := genericapiserver.NewConfig(s.data.schemes.Codecs)
	c.EffectiveVersion = newEffectiveVersion()
	if err := s.addServing(c); err != nil {
		return err
	}
	c.Authentication.APIAudiences = s.cfg.Authentication.APIAudiences
	c.Authentication.Authenticator = filters.CountUsers(s.cfg.Conns, s.who.loopback.Before(s.who.requests.Request))
	c.Authorization.Authorizer = authorizer.AuthorizerFunc(s.judges.rights.Authorize)
	c.RequestInfoResolver = authz.WithStreamVerbs(genericapiserver.NewRequestInfoResolver(c))
	c.AdmissionControl = s.judges.admission.Plugins
	c.EquivalentResourceRegistry = dynamic.NewEquivalents()
	c.LongRunningFunc = longRunning()
	c.ShutdownWatchTerminationGracePeriod = watchDrainTime
	s.putOnRecord(c)
	s.describe(c)
	if err := s.harden(c); err != nil {
		return err
	}
	if err := s.addHealth(c); err != nil {
		return err
	}
	s.addHooks(c)

	s.served.custom, err = customresources.New(c, customresources.Outer{Backend: s.data.backend, Stores: s.data.stores,
		Client: s.ways.loopback.config, Log: s.log, Groups: s.served.aggregation, Quotas: s.judges.quotas,
		Handler: func() http.Handler { return s.served.generic.Handler.Director }})
	if err != nil {
		return err
	}
	c.AddHealthChecks(s.served.custom.Checks()...)
	s.judges.quotas.Count(s.served.custom)
	defer func() {
		if err != nil {
			s.served.custom.Close()
			s.served.custom.Generic().Destroy()
		}
	}()
	s.served.generic, err = c.Complete(nil).New("wherry", s.served.custom.Generic())
	if err != nil {
		return err
	}
	s.served.generic.ShutdownTimeout = drainTime
	return s.served.custom.Merge(s.served.generic)
}

// addServing gives the server its listener, with its certificate and whose clients it knows, and its own way to itself.
func (s *Server) addServing(c *genericapiserver.Config) error {
	cert, err := s.newServingCert()
	if err != nil {
		return err
	}
	clientCA, err := dynamiccertificates.NewStaticCAContent("client-ca", s.who.ca.CertPEM())
	if err != nil {
		return err
	}
	c.SecureServing = &genericapiserver.SecureServingInfo{Listener: s.ways.listener, Cert: cert, ClientCA: clientCA}
	c.ExternalAddress = net.JoinHostPort(s.cfg.host(), strconv.Itoa(s.Port()))
	c.LoopbackClientConfig = s.ways.loopback.config
	return nil
}

// describe says what the OpenAPI documents are made of; serveDocuments makes them when they are asked for, where the
// library would make all at the start.
func (s *Server) describe(c *genericapiserver.Config) {
	names := apiopenapi.NewDefinitionNamer(s.data.schemes.External)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(schemes.Definitions, names)
	c.OpenAPIConfig.Info.Title = "Kubernetes"
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(schemes.Definitions, names)
	c.OpenAPIV3Config.Info.Title = "Kubernetes"
	c.SkipOpenAPIInstallation = true
	s.served.openAPI = documents.Config{V2: c.OpenAPIConfig, V3: c.OpenAPIV3Config, Log: s.log}
}

// longRunning selects the requests that have no time limit.
func longRunning() request.LongRunningRequestCheck {
	long := genericfilters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward",
			timeline.Subresource))
	return func(r *http.Request, info *request.RequestInfo) bool {
		return long(r, info) || nodenetwork.IsWatch(r)
	}
}

// addHooks adds what is done when the server serves.
func (s *Server) addHooks(c *genericapiserver.Config) {
	// They wake each second to report the highest number of requests in that second; the current number is reported
	// elsewhere.
	c.DisabledPostStartHooks.Insert("priority-and-fairness-filter", "max-in-flight-filter")

	started := time.Now()
	health.AddHook(c, health.Bootstrap, s.bootstrap)
	c.AddPostStartHookOrDie("late-records", func(ctx genericapiserver.PostStartHookContext) error {
		s.served.debugging.record.Late(ctx, started)
		return nil
	})
	health.AddHook(c, health.Aggregation, func(ctx context.Context) error {
		return s.served.aggregation.Start(ctx, aggregation.Documents{Plain: s.served.generic.DiscoveryGroupManager,
			Aggregated: s.served.generic.AggregatedDiscoveryGroupManager})
	})
	health.AddHook(c, health.Admission, func(ctx context.Context) error { return s.judges.admission.Start(ctx) })
}

func (s *Server) addHealth(c *genericapiserver.Config) error {
	b := s.data.backend
	check := b.HealthInside
	if s.cfg.Inside != nil {
		// Without the library's health check of its log, which all servers in the process share.
		ping := []healthz.HealthChecker{healthz.PingHealthz}
		c.HealthzChecks, c.ReadyzChecks, c.LivezChecks = ping, slices.Clone(ping), slices.Clone(ping)
	}
	if b.Etcd == nil {
		var err error
		if check, err = factory.CreateHealthCheck(b.Config, c.DrainedNotify()); err != nil {
			return err
		}
	}
	s.data.health = check
	c.AddHealthChecks(healthz.NamedCheck("etcd", func(*http.Request) error { return check() }))
	return nil
}

// openRecorder opens the audit log. It comes early: a policy that makes no sense refuses the start before anything is
// made.
func (s *Server) openRecorder() (err error) {
	if s.cfg.Audit == nil {
		s.served.recorder = &audit.Recorder{}
		return nil
	}
	s.served.recorder, err = audit.Open(*s.cfg.Audit, s.cfg.DataDir)
	return err
}

// putOnRecord gives the handlers the audit log.
func (s *Server) putOnRecord(c *genericapiserver.Config) {
	if s.served.recorder.Backend != nil {
		c.AuditBackend, c.AuditPolicyRuleEvaluator = s.served.recorder.Backend, s.served.recorder.Policy
	}
}

// connection is how admission reaches this server, once it is assembled.
func (s *Server) connection() (dynamic.Connection, error) {
	if s.served.generic == nil {
		return dynamic.Connection{}, errors.New("the server is still starting")
	}
	return dynamic.Connection{Client: s.ways.loopback.config, Stores: s.data.stores,
		Authorizer: s.served.generic.Authorizer, Version: s.served.generic.EffectiveVersion}, nil
}

// authorizing is who decides about rights, once the server is assembled.
func (s *Server) authorizing() authorizer.UnconditionalAuthorizer { return s.served.generic.Authorizer }
