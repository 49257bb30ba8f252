// SPDX-License-Identifier: Apache-2.0

package api

import (
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
	"github.com/wherryproject/wherry/internal/api/nodenetwork"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/timeline"
)

// assemble makes the generic server: chain of handlers, authentication, authorisation, admission, OpenAPI, health.
func (s *Server) assemble() (err error) {
	c := genericapiserver.NewConfig(s.data.schemes.Codecs)
	c.EffectiveVersion = newEffectiveVersion()
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

	c.Authentication.APIAudiences = s.cfg.Authentication.APIAudiences
	c.Authentication.Authenticator = filters.AtDoor(s.cfg.Door, s.who.insiders.Before(s.who.requests.Request))
	c.Authorization.Authorizer = authorizer.AuthorizerFunc(s.judges.rights.Authorize)
	c.RequestInfoResolver = authz.WithStreamVerbs(genericapiserver.NewRequestInfoResolver(c))
	c.AdmissionControl = s.judges.admission.Plugins
	s.putOnRecord(c)

	names := apiopenapi.NewDefinitionNamer(s.data.schemes.External)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(registry.Definitions, names)
	c.OpenAPIConfig.Info.Title = "Kubernetes"
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(registry.Definitions, names)
	c.OpenAPIV3Config.Info.Title = "Kubernetes"
	c.SkipOpenAPIInstallation = true // the library makes all documents at the start: serveDocuments
	s.served.openAPI = documents.Config{V2: c.OpenAPIConfig, V3: c.OpenAPIV3Config, Log: s.log}

	long := genericfilters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward",
			timeline.Subresource))
	c.LongRunningFunc = func(r *http.Request, info *request.RequestInfo) bool {
		return long(r, info) || nodenetwork.IsWatch(r)
	}
	c.ShutdownWatchTerminationGracePeriod = watchDrainTime
	if err := s.harden(c); err != nil {
		return err
	}
	if err := s.addHealth(c); err != nil {
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
		s.served.debugging.record.Late(ctx, started)
		return nil
	})

	c.AddPostStartHookOrDie("aggregation", func(ctx genericapiserver.PostStartHookContext) error {
		err := s.served.aggregation.Start(ctx, aggregation.Documents{Plain: s.served.generic.DiscoveryGroupManager,
			Aggregated: s.served.generic.AggregatedDiscoveryGroupManager})
		if ctx.Err() == nil {
			return err
		}
		return nil
	})

	c.EquivalentResourceRegistry = dynamic.NewEquivalents()
	c.AddPostStartHookOrDie("admission", func(ctx genericapiserver.PostStartHookContext) error {
		if err := s.judges.admission.Start(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
	s.served.custom, err = customresources.New(c, customresources.Outer{Backend: s.data.backend, Stores: s.data.stores,
		Client: s.ways.loopback.config, Log: s.log, Groups: s.served.aggregation, Quotas: s.judges.quotas,
		Handler: func() http.Handler { return s.served.generic.Handler.Director }})
	if err != nil {
		return err
	}
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

func (s *Server) addHealth(c *genericapiserver.Config) error {
	b := s.data.backend
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
