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
		all.add(r.kind.gv, name, r)
		if r.kind.status != nil {
			all.add(r.kind.gv, name+"/status", r.sub(s.schemes, *r.kind.status))
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
	all.add(eventsv1.SchemeGroupVersion, "events", eventsView{&kindREST{Store: events.with(s.schemes, newEventRules()), kind: events.kind}})

	if err := s.generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, s.group(corev1.SchemeGroupVersion, all)); err != nil {
		return err
	}
	var infos []*genericapiserver.APIGroupInfo
	for _, g := range groups() {
		if g.gv != corev1.SchemeGroupVersion && all[g.gv] != nil {
			infos = append(infos, s.group(g.gv, all))
		}
	}
	return s.generic.InstallAPIGroups(infos...)
}

// addCore serves what the core group has besides plain kinds.
func (s *Server) addCore(all served) {
	st, core := s.stores, corev1.SchemeGroupVersion
	s.addresses.attach(st["services"].onWrite)
	all.add(core, "namespaces", newNamespaceREST(st["namespaces"]))
	all.add(core, "namespaces/finalize", finalizeREST{st["namespaces"].with(s.schemes, namespaceFinalizeRules())})
	if s.cfg.Features.Enabled(features.EphemeralContainers) { // off: there is no such subresource (EC-24)
		all.add(core, "pods/ephemeralcontainers", ephemeralREST{st["pods"].sub(s.schemes, podEphemeralRules()), s.debugger})
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
	all.add(debugrun.GroupVersion(), debugrun.Resource+"/status", ownStatus{runs.sub(s.schemes, *runs.kind.status)})
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
	core["pods/"+timeline.Subresource] = connect.NewTimeline(pods, s.stores.namespace, nodes, s.nodeNames)
	core["pods/exec"] = connect.NewExec(pods, nodes, s.debugger)
	core["pods/attach"] = connect.NewAttach(pods, nodes)
	core["pods/portforward"] = connect.NewPortForward(pods, nodes)
	core["pods/proxy"] = connect.NewPodProxy(pods, plain)
	core["nodes/proxy"] = connect.NewNodeProxy(nodes, s.kubelets.Published, plain)
	core["services/proxy"] = connect.NewServiceProxy(services, s.stores.slices, plain)
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
	info := genericapiserver.NewDefaultAPIGroupInfo(gv.Group, s.schemes.Scheme, s.schemes.params, s.schemes.codecs)
	info.PrioritizedVersions = []schema.GroupVersion{gv}
	info.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{gv.Version: all[gv]}
	if isOwn(gv) {
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
