// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"fmt"
	"maps"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/wherryproject/wherry/internal/api/filters"
	"github.com/wherryproject/wherry/internal/api/openapi"
	"github.com/wherryproject/wherry/internal/cluster/debugapi/options"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/streams"
)

// assemble makes the generic server.
func (s *Server) assemble(cluster *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := options.Register(scheme); err != nil {
		return err
	}
	codecs := serializer.NewCodecFactory(scheme)
	c := genericapiserver.NewConfig(codecs)
	c.FeatureGate = utilfeature.DefaultFeatureGate
	c.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	c.SecureServing = &genericapiserver.SecureServingInfo{Listener: streams.Gathering(s.conns.Listener(s.listener)),
		// a WebSocket takes a connection of its own
		Cert: served{s.authority.Serving}, ClientCA: s.front.ca, DisableHTTP2: true}
	c.ExternalAddress = net.JoinHostPort(s.config.serviceNames()[0], "443")
	c.LoopbackClientConfig = cluster // nothing here is asked for by the server itself
	c.Authentication.RequestHeaderConfig = s.front.config()
	c.Authentication.Authenticator = filters.CountUsers(s.conns, s.front.authenticator())
	c.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return s.conns.Handler(genericapiserver.DefaultBuildHandlerChain(api, c))
	}
	rights, err := newAuthorizer(s.client)
	if err != nil {
		return err
	}
	c.Authorization.Authorizer, s.authorizer = rights, rights
	c.LongRunningFunc = genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"),
		sets.NewString(wire.Shell, wire.Exec, wire.Files))
	document(c, scheme)
	ping := []healthz.HealthChecker{healthz.PingHealthz}
	c.HealthzChecks, c.LivezChecks, c.ReadyzChecks = ping, ping, ping
	c.EnableProfiling, c.EnableIndex = false, false
	rules, err := admit(c, s.client, cluster, func() { s.end(errRules) })
	if err != nil {
		return err
	}
	c.AdmissionControl = completing{c.AdmissionControl, s}
	if s.generic, err = c.Complete(rules).New(wire.APIName, genericapiserver.NewEmptyDelegate()); err != nil {
		return err
	}
	s.generic.ShutdownTimeout = stopTime
	group := genericapiserver.NewDefaultAPIGroupInfo(wire.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	group.VersionedResourcesStorageMap = map[string]map[string]genericrest.Storage{wire.Version: s.resources()}
	if err := s.generic.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("group %s: %w", wire.Group, err)
	}
	return nil
}

// document says what the API's documents are made of.
func document(c *genericapiserver.Config, scheme *runtime.Scheme) {
	names := apiopenapi.NewDefinitionNamer(scheme)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, names)
	c.OpenAPIConfig.Info.Title = "Wherry debugging"
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, names)
	c.OpenAPIV3Config.Info.Title = "Wherry debugging"
}

// definitions are those of Kubernetes' own types, and of the options.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := openapi.GetOpenAPIDefinitions(ref)
	maps.Copy(all, options.Definitions())
	return all
}

// served gives the library the certificate that kube-apiserver is shown.
type served struct{ *pki.Renewing }

var _ dynamiccertificates.CertKeyContentProvider = served{}

// Name implements dynamiccertificates.CertKeyContentProvider.
func (served) Name() string { return "serving" }

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (c served) CurrentCertKeyContent() (cert, key []byte) { return c.PEM() }

// AddListener implements dynamiccertificates.Notifier.
func (c served) AddListener(l dynamiccertificates.Listener) { c.OnRenewal(l.Enqueue) }
