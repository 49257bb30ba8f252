// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/debugrun"
	"github.com/wherryproject/wherry/internal/features"
)

// stores are the opened kinds by plural name.
type stores map[string]*kindREST

// openStores connects every kind to etcd, all at once: each has a connection of its own.
func openStores(b *backend) (stores, error) {
	type opened struct {
		rest *kindREST
		err  error
	}
	table := kinds(b.features)
	results := make(chan opened, len(table))
	for _, k := range table {
		go func() {
			r, err := b.open(k)
			results <- opened{r, err}
		}()
	}
	all := stores{}
	var errs []error
	for range table {
		r := <-results
		if r.err != nil {
			errs = append(errs, r.err)
			continue
		}
		all[r.rest.kind.plural] = r.rest
	}
	if len(errs) > 0 {
		all.close()
		return nil, fmt.Errorf("connect to etcd: %w", errors.Join(errs...))
	}
	return all, nil
}

func (s stores) close() {
	for _, r := range s {
		r.DestroyFunc()
	}
}

// within is ctx as if a request for this kind had come: the library names the resource in its errors from there.
func (r *kindREST) within(ctx context.Context, namespace string) context.Context {
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: r.kind.gv.Group, APIVersion: r.kind.gv.Version, Resource: r.kind.plural, Namespace: namespace,
	})
	return request.WithNamespace(ctx, namespace)
}

// get reads one object straight from the store.
func get[T any](ctx context.Context, r *kindREST, namespace, name string) (*T, error) {
	obj, err := r.Get(r.within(ctx, namespace), name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	t, ok := any(obj).(*T)
	if !ok {
		return nil, fmt.Errorf("the store of %s returned a %T", r.kind.plural, obj)
	}
	return t, nil
}

func (s stores) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	return get[corev1.Namespace](ctx, s["namespaces"], "", name)
}

func (s stores) serviceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return get[corev1.ServiceAccount](ctx, s["serviceaccounts"], namespace, name)
}

func (s stores) pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return get[corev1.Pod](ctx, s["pods"], namespace, name)
}

func (s stores) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return get[corev1.Secret](ctx, s["secrets"], namespace, name)
}

func (s stores) node(ctx context.Context, name string) (*corev1.Node, error) {
	return get[corev1.Node](ctx, s["nodes"], "", name)
}

// slices lists the endpoint slices of a service; the namespace is in the context.
func (s stores) slices(ctx context.Context, service string) ([]*discoveryv1.EndpointSlice, error) {
	r := s["endpointslices"]
	list, err := r.List(r.within(ctx, request.NamespaceValue(ctx)), &metainternal.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}),
	})
	if err != nil {
		return nil, err
	}
	var found []*discoveryv1.EndpointSlice
	for i := range list.(*discoveryv1.EndpointSliceList).Items {
		found = append(found, &list.(*discoveryv1.EndpointSliceList).Items[i])
	}
	return found, nil
}

// install serves every kind and its subresources.
func (s *Server) install() error {
	st := s.stores
	s.debugger = s.newDebugger()
	core := map[string]rest.Storage{}
	for name, r := range st {
		if r.kind.gv != corev1.SchemeGroupVersion {
			continue
		}
		core[name] = r
		if r.kind.status != nil {
			core[name+"/status"] = subresource{r.with(s.schemes, *r.kind.status)}
		}
	}
	s.addresses.attach(st["services"].Store)

	namespaces := newNamespaceREST(st["namespaces"])
	core["namespaces"] = namespaces
	core["namespaces/finalize"] = finalizeREST{st["namespaces"].with(s.schemes, namespaceFinalizeRules())}
	core["namespaces/status"] = subresource{st["namespaces"].with(s.schemes, namespaceStatusRules())}

	if s.cfg.Features.Enabled(features.EphemeralContainers) { // off: there is no such subresource (EC-24)
		core["pods/ephemeralcontainers"] = ephemeralREST{subresource{st["pods"].with(s.schemes, podEphemeralRules())}, s.debugger}
	}
	core["pods/"+debugrun.Subresource] = debugREST{s.debugger}
	core["pods/binding"] = bindingREST{st["pods"].Store}
	core["pods/eviction"] = evictionREST{st["pods"].Store}
	core["serviceaccounts/token"] = tokenREST{s.tokens}
	s.addConnecters(core)

	events := map[string]rest.Storage{"events": eventsView{&kindREST{Store: st["events"].with(s.schemes, newEventRules()), kind: st["events"].kind}}}
	discovery := map[string]rest.Storage{"endpointslices": st["endpointslices"]}
	coordination := map[string]rest.Storage{"leases": st["leases"]}
	runs := st[debugrun.Resource]
	debug := map[string]rest.Storage{
		debugrun.Resource:             debugRunREST{runs},
		debugrun.Resource + "/status": ownStatus{subresource{runs.with(s.schemes, *runs.kind.status)}},
	}

	if err := s.generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, s.group(corev1.SchemeGroupVersion, core)); err != nil {
		return err
	}
	return s.generic.InstallAPIGroups(
		s.group(coordinationv1.SchemeGroupVersion, coordination),
		s.group(discoveryv1.SchemeGroupVersion, discovery),
		s.group(eventsv1.SchemeGroupVersion, events),
		s.group(debugrun.GroupVersion(), debug),
	)
}

func (s *Server) addConnecters(core map[string]rest.Storage) {
	pods := func(ctx context.Context, name string) (*corev1.Pod, error) {
		return s.stores.pod(ctx, request.NamespaceValue(ctx), name)
	}
	services := func(ctx context.Context, name string) (*corev1.Service, error) {
		return get[corev1.Service](ctx, s.stores["services"], request.NamespaceValue(ctx), name)
	}
	nodes, plain := s.kubelets.Locate, s.proxies
	core["pods/log"] = connect.NewLog(pods, nodes)
	core["pods/exec"] = connect.NewExec(pods, nodes, s.debugger)
	core["pods/attach"] = connect.NewAttach(pods, nodes)
	core["pods/portforward"] = connect.NewPortForward(pods, nodes)
	core["pods/proxy"] = connect.NewPodProxy(pods, plain)
	core["nodes/proxy"] = connect.NewNodeProxy(nodes, plain)
	core["services/proxy"] = connect.NewServiceProxy(services, s.stores.slices, plain)
}

func (s *Server) group(gv schema.GroupVersion, resources map[string]rest.Storage) *genericapiserver.APIGroupInfo {
	info := genericapiserver.NewDefaultAPIGroupInfo(gv.Group, s.schemes.Scheme, s.schemes.params, s.schemes.codecs)
	info.PrioritizedVersions = []schema.GroupVersion{gv}
	info.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{gv.Version: resources}
	if gv == debugrun.GroupVersion() {
		info.NegotiatedSerializer = withoutProtobuf{info.NegotiatedSerializer}
	}
	return &info
}

// withoutProtobuf serves types of our own, which have no protobuf form: clients that would take it get the next form they take.
type withoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(i runtime.SerializerInfo) bool {
		return i.MediaType == runtime.ContentTypeProtobuf
	})
}

// eventsView shows the core events under events.k8s.io; the connection belongs to the core kind.
type eventsView struct{ *kindREST }

// Destroy implements rest.Storage.
func (eventsView) Destroy() {}
