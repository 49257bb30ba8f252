// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/debugrun"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/timeline"
)

// served is what the server answers for, by group and path below it ("pods", "pods/log").
type served map[schema.GroupVersion]map[string]rest.Storage

func (v served) add(gv schema.GroupVersion, path string, storage rest.Storage) {
	if v[gv] == nil {
		v[gv] = map[string]rest.Storage{}
	}
	v[gv][path] = storage
}

// install serves every kind and its subresources. A kind of the table is served as it is, with its status; what is special about
// some comes after.
func (s *Server) install() error {
	s.debugger = s.newDebugger()
	s.stores["namespaces"].ShouldDeleteDuringUpdate = emptiedNamespace // of its subresources too
	all := served{}
	for name, r := range s.stores {
		all.add(r.Kind.GV, name, r)
		if r.Kind.Status != nil {
			all.add(r.Kind.GV, name+"/status", r.Sub(s.schemes, *r.Kind.Status))
		}
	}
	s.addCore(all)
	s.addConnecters(all[corev1.SchemeGroupVersion])
	s.addDebugRuns(all)
	s.addMetrics(all)
	s.addAuthentication(all)
	s.addCertificates(all)
	s.addRBAC(all)
	s.addReviews(all)
	s.addConfigz(s.generic.Handler.NonGoRestfulMux)
	if err := s.addOpenID(s.generic.Handler.NonGoRestfulMux); err != nil {
		return err
	}
	events := s.stores["events"]
	all.add(eventsv1.SchemeGroupVersion, "events", eventsView{&registry.REST{Store: events.With(s.schemes, newEventRules()), Kind: events.Kind}})

	if err := s.generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, s.group(corev1.SchemeGroupVersion, all)); err != nil {
		return err
	}
	var infos []*genericapiserver.APIGroupInfo
	for _, g := range registry.Groups() {
		if g.GV != corev1.SchemeGroupVersion && all[g.GV] != nil {
			infos = append(infos, s.group(g.GV, all))
		}
	}
	return s.generic.InstallAPIGroups(infos...)
}

// addCore serves what the core group has besides plain kinds.
func (s *Server) addCore(all served) {
	st, core := s.stores, corev1.SchemeGroupVersion
	s.addresses.attach(st["services"].OnWrite)
	all.add(core, "namespaces", newNamespaceREST(st["namespaces"]))
	all.add(core, "namespaces/finalize", finalizeREST{st["namespaces"].With(s.schemes, namespaceFinalizeRules())})
	if s.cfg.Features.Enabled(features.EphemeralContainers) { // off: there is no such subresource (EC-24)
		all.add(core, "pods/ephemeralcontainers", ephemeralREST{st["pods"].Sub(s.schemes, podEphemeralRules()), s.debugger})
	}
	all.add(core, "pods/"+debugrun.Subresource, debugREST{s.debugger})
	all.add(core, "endpoints", endpointsREST{st["endpoints"]})
	all.add(core, "componentstatuses", newComponentREST(s.etcdHealth))
	all.add(core, "pods/binding", bindingREST{st["pods"].Store, s.quotas})
	all.add(core, "pods/eviction", evictionREST{st["pods"].Store})
	all.add(core, "serviceaccounts/token", tokenREST{s.tokens})
}

// addDebugRuns serves the records of debugging, which nobody but the server writes.
func (s *Server) addDebugRuns(all served) {
	runs := s.stores[debugrun.Resource]
	all.add(debugrun.GroupVersion(), debugrun.Resource, debugRunREST{runs})
	all.add(debugrun.GroupVersion(), debugrun.Resource+"/status", ownStatus{runs.Sub(s.schemes, *runs.Kind.Status)})
}

func (s *Server) addConnecters(core map[string]rest.Storage) {
	pods := func(ctx context.Context, name string) (*corev1.Pod, error) {
		return s.stores.Pod(ctx, request.NamespaceValue(ctx), name)
	}
	services := func(ctx context.Context, name string) (*corev1.Service, error) {
		return registry.Get[corev1.Service](ctx, s.stores["services"], request.NamespaceValue(ctx), name)
	}
	nodes, plain := s.kubelets.Locate, s.proxies
	core["pods/log"] = connect.NewLog(pods, nodes)
	core["pods/"+timeline.Subresource] = connect.NewTimeline(pods, s.stores.Namespace, nodes, s.nodeNames)
	core["pods/exec"] = connect.NewExec(pods, nodes, s.debugger)
	core["pods/attach"] = connect.NewAttach(pods, nodes)
	core["pods/portforward"] = connect.NewPortForward(pods, nodes)
	core["pods/proxy"] = connect.NewPodProxy(pods, plain)
	core["nodes/proxy"] = connect.NewNodeProxy(nodes, s.kubelets.Published, plain)
	core["services/proxy"] = connect.NewServiceProxy(services, s.stores.Slices, plain)
}

// nodeNames lists the names of all nodes.
func (s *Server) nodeNames(ctx context.Context) ([]string, error) {
	obj, err := s.stores["nodes"].List(ctx, &metainternal.ListOptions{})
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*corev1.NodeList)
	if !ok {
		return nil, fmt.Errorf("the store returned a %T for the nodes", obj)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

func (s *Server) group(gv schema.GroupVersion, all served) *genericapiserver.APIGroupInfo {
	info := genericapiserver.NewDefaultAPIGroupInfo(gv.Group, s.schemes.Scheme, s.schemes.Params, s.schemes.Codecs)
	info.PrioritizedVersions = []schema.GroupVersion{gv}
	info.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{gv.Version: all[gv]}
	if registry.IsOwn(gv) {
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
type eventsView struct{ *registry.REST }

// Destroy implements rest.Storage.
func (eventsView) Destroy() {}
