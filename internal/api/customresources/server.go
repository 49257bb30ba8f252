// SPDX-License-Identifier: Apache-2.0

package customresources

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace/noop"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	crdopenapi "k8s.io/apiextensions-apiserver/pkg/controller/openapi"
	crdopenapiv3 "k8s.io/apiextensions-apiserver/pkg/controller/openapiv3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/api/webhooks"
)

// groupPriority is that of the server's first group; each further one has a little less. Custom groups have 1000: where
// a custom resource has the name of one of ours, clients that do not say the group get ours.
const groupPriority = 17000

// Server serves CustomResourceDefinitions and custom resources.
type Server struct {
	crds   *apiextensions.CustomResourceDefinitions
	stored *stored
	late   *lateCustom
	groups Groups
	merged atomic.Bool // all that there were at the start are
}

// Groups is told which groups and versions custom resources define.
type Groups interface {
	// Custom is called at each change of a group: none of its versions is left when the group is gone. It must not
	// wait.
	Custom(group string, versions []string)
	// Prune is called once, when Custom has been called for all that were there at the start. Nothing depends on what
	// comes of it.
	Prune(ctx context.Context)
}

// Outer is the server that the custom resources are a part of.
type Outer struct {
	Backend *registry.Backend
	Stores  registry.Stores
	Client  *rest.Config // of the server, for webhooks that convert
	// Handler answers for every document of the server. It is asked for when a request is there: the server is complete
	// then.
	Handler func() http.Handler
	Groups  Groups
	Quotas  Charger // nil: there are none
	Log     *slog.Logger
}

// New makes the server of CustomResourceDefinitions and custom resources, to which the outer one hands
// every request it has no path for. It takes part in it: the same authentication, authorisation and admission, one
// store, one port, one discovery. c is the outer one's.
func New(c *genericapiserver.Config, o Outer) (*Server, error) {
	c.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	b := o.Backend
	late := &lateCustom{log: o.Log, storage: b.OpenStorage, documents: customDocuments{handler: o.Handler,
		own: ownGroups()}}
	own := *c
	own.Serializer = apiextensions.Codecs
	own.MergedResourceConfig = apiextensions.DefaultAPIResourceConfigSource()
	own.RESTOptionsGetter = extensionStorage{
		b, apiextensions.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion), apiextensionsv1.SchemeGroupVersion,
		late.open,
	}
	// Of its own: what each server appends to a list that they shared would take the place of the other's.
	own.HealthzChecks, own.LivezChecks, own.ReadyzChecks = nil, nil, nil
	// What the outer server does once for both.
	own.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{}
	own.BuildHandlerChainFunc = func(h http.Handler, _ *genericapiserver.Config) http.Handler { return h }
	own.SkipOpenAPIInstallation = true
	own.OpenAPIConfig = nil
	own.EnableIndex, own.EnableProfiling, own.EnableMetrics = false, false, false

	plain := extensionStorage{b: b, codec: unstructured.UnstructuredJSONScheme, open: b.OpenStorage}
	counted := plain
	counted.open = chargedOpen(b.OpenStorage, o.Quotas)
	config := apiextensions.Config{
		GenericConfig: &genericapiserver.RecommendedConfig{Config: own},
		ExtraConfig: apiextensions.ExtraConfig{
			CRDRESTOptionsGetter: counted,
			MasterCount:          1,
			ServiceResolver:      webhooks.NewServiceResolver(o.Stores),
			AuthResolverWrapper: webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, o.Client,
				noop.NewTracerProvider()),
		},
	}
	crds, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("custom resources: %w", err)
	}
	return &Server{crds: crds, stored: newStored(plain), late: late, groups: o.Groups}, nil
}

// Close frees what counting has opened.
func (r *Server) Close() { r.stored.close() }

// Generic is the inner server.
func (r *Server) Generic() *genericapiserver.GenericAPIServer { return r.crds.GenericAPIServer }

// Await has requests for documents wait for what these do not show yet.
func (r *Server) Await(next http.Handler) http.Handler { return r.late.await(next) }

// Merge makes the custom resources part of the outer server's documents: discovery and OpenAPI. The group of the
// definitions themselves is served by the outer server, with the inner one's handlers.
func (r *Server) Merge(outer *genericapiserver.GenericAPIServer) error {
	for _, ws := range r.crds.GenericAPIServer.Handler.GoRestfulContainer.RegisteredWebServices() {
		if strings.HasPrefix(ws.RootPath(), "/apis/"+apiextensionsv1.GroupName) {
			outer.Handler.GoRestfulContainer.Add(ws)
		}
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: apiextensionsv1.SchemeGroupVersion.String(),
		Version: apiextensionsv1.SchemeGroupVersion.Version}
	outer.DiscoveryGroupManager.AddGroup(metav1.APIGroup{
		Name: apiextensionsv1.GroupName, Versions: []metav1.GroupVersionForDiscovery{version},
		PreferredVersion: version,
	})
	rankGroups(outer.AggregatedDiscoveryGroupManager)

	informer := r.crds.Informers.Apiextensions().V1().CustomResourceDefinitions()
	groups, err := newCustomGroups(informer, outer.DiscoveryGroupManager, ownGroups(), r.groups)
	if err != nil {
		return err
	}
	v2, v3 := crdopenapi.NewController(informer), crdopenapiv3.NewController(informer)
	return outer.AddPostStartHook("merge-custom-resources", func(ctx genericapiserver.PostStartHookContext) error {
		go v2.Run(outer.StaticOpenAPISpec, outer.OpenAPIVersionedService, ctx.Done())
		go v3.Run(outer.OpenAPIV3VersionedService, ctx.Done())
		err := groups.wait(ctx)
		r.late.found(groups.crds)
		r.merged.Store(err == nil)
		return err
	})
}

// rankGroups puts our groups before all custom ones, in our order.
func rankGroups(manager aggregated.ResourceManager) {
	for _, r := range Ranks() {
		manager.SetGroupVersionPriority(metav1.GroupVersion(r.GV), r.Priority, 15)
	}
}

// Rank is a group and version of the server itself, and how much it comes before those of others.
type Rank struct {
	GV       schema.GroupVersion
	Priority int
}

// Ranks are those of all groups, in their order.
func Ranks() (ranks []Rank) {
	rank := groupPriority
	for _, g := range schemes.Groups() {
		ranks = append(ranks, Rank{g.GV, rank})
		rank -= 10
	}
	return append(ranks, Rank{apiextensionsv1.SchemeGroupVersion, rank})
}

// ownGroups are the groups that no custom resource decides the discovery of.
func ownGroups() map[string]bool {
	own := map[string]bool{apiextensionsv1.GroupName: true}
	for _, g := range schemes.Groups() {
		own[g.GV.Group] = true
	}
	return own
}

// extensionStorage says where and how definitions and custom resources are stored: below the same prefix as everything
// else, where kube-apiserver keeps them. A connection to etcd is opened when a resource is first asked for.
type extensionStorage struct {
	b     *registry.Backend
	codec runtime.Codec
	as    runtime.GroupVersioner // nil: the library decides, by the definition
	open  generic.StorageDecorator
}

var _ generic.RESTOptionsGetter = extensionStorage{}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (e extensionStorage) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	c := e.b.Config
	c.Codec = registry.Limited(e.codec, resource)
	c.EncodeVersioner = e.as
	return generic.RESTOptions{
		StorageConfig:           c.ForResource(resource),
		Decorator:               e.open,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 4,
		ResourcePrefix:          resource.Group + "/" + resource.Resource,
	}, nil
}
