// SPDX-License-Identifier: Apache-2.0

package dynamic

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	clientdynamic "k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	basecompatibility "k8s.io/component-base/compatibility"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/webhooks"
)

// pluginParts are what the plug-ins of webhooks and policies are made with.
type pluginParts struct {
	context   context.Context
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	mapper    meta.ResettableRESTMapper
	toInit    []admission.PluginInitializer
}

// Connection is how plug-ins that are clients of the server reach it.
type Connection struct {
	Client     *rest.Config
	Stores     registry.Stores
	Authorizer authorizer.UnconditionalAuthorizer
	Version    basecompatibility.EffectiveVersion
}

// newPluginParts connects them to the server. What they run ends with ctx.
func newPluginParts(ctx context.Context, to Connection) (*pluginParts, error) {
	client, err := kubernetes.NewForConfig(to.Client)
	if err != nil {
		return nil, fmt.Errorf("client of admission: %w", err)
	}
	anyKind, err := clientdynamic.NewForConfig(to.Client)
	if err != nil {
		return nil, fmt.Errorf("client of admission: %w", err)
	}
	p := &pluginParts{
		context: ctx, client: client,
		informers: informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithTransform(withoutManagedFields)),
		mapper: newFreshMapper(client.Discovery()),
	}
	p.toInit = []admission.PluginInitializer{
		initializer.New(client, anyKind, p.informers, authorizer.AuthorizerFunc(to.Authorizer.Authorize),
			utilfeature.DefaultFeatureGate, to.Version, ctx.Done(), p.mapper),
		webhookinit.NewPluginInitializer(nil, webhooks.NewServiceResolver(to.Stores)),
	}
	return p, nil
}

// withoutManagedFields makes less of what is kept in memory.
func withoutManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// initialize gives a plug-in what it wants and starts it.
func (p *pluginParts) initialize(plugin admission.Interface) error {
	for _, init := range p.toInit {
		init.Initialize(plugin)
	}
	if wants, ok := plugin.(initializer.WantsExcludedAdmissionResources); ok {
		wants.SetExcludedAdmissionResources(questions())
	}
	if err := admission.ValidateInitialization(plugin); err != nil {
		return err
	}
	p.informers.Start(p.context.Done())
	return nil
}

// freshMapper knows which resource a kind is from the server's discovery. What it does not find it looks for again: a
// custom resource definition may have come.
type freshMapper struct {
	meta.ResettableRESTMapper
}

func newFreshMapper(d discovery.DiscoveryInterface) freshMapper {
	return freshMapper{restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}
}

// RESTMapping implements meta.RESTMapper.
func (m freshMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	found, err := m.ResettableRESTMapper.RESTMapping(gk, versions...)
	if meta.IsNoMatchError(err) {
		m.Reset()
		found, err = m.ResettableRESTMapper.RESTMapping(gk, versions...)
	}
	return found, err
}

// NewEquivalents records which resources are one and the same: a rule about one of them is one about the others, unless
// its matchPolicy is Exact. Both event APIs show one kind.
func NewEquivalents() runtime.EquivalentResourceRegistry {
	return runtime.NewEquivalentResourceRegistryWithIdentity(func(r schema.GroupResource) string {
		if r.Group == eventsv1.GroupName {
			r.Group = corev1.GroupName
		}
		return r.String()
	})
}
