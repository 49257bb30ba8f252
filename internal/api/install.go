// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/documents"
	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/metrics"
	"github.com/wherryproject/wherry/internal/api/nodenetwork"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/timeline"
)

// install serves every kind, and what stands beside them.
func (s *Server) install() error {
	all := registry.Served{}
	kinds.Serve(all, kinds.Host{Stores: s.data.stores, Schemes: s.data.schemes, Addresses: s.data.addresses,
		NodePorts: s.data.nodePorts, Loaded: s.data.keeper.Loaded,
		Etcd: s.data.health})
	s.addDebugging(all[corev1.SchemeGroupVersion])
	s.addConnecters(all[corev1.SchemeGroupVersion])
	metrics.Serve(all, s.data.stores, s.ways.kubelets.Locate)
	s.who.requests.Serve(all)
	s.judges.rights.ServeRBAC(all, s.judges.admission.OpenNamespace)
	s.judges.rights.ServeReviews(all)
	s.addConfigz(s.served.generic.Handler.NonGoRestfulMux)
	s.served.nodeNetwork = nodenetwork.New(s.cluster, s.data.stores["pods"], s.data.stores["nodes"])
	s.served.nodeNetwork.Register(s.served.generic.Handler.NonGoRestfulMux)
	if err := s.who.tokens.ServeKeys(s.served.generic.Handler.NonGoRestfulMux, s.URL()); err != nil {
		return err
	}
	core := s.group(corev1.SchemeGroupVersion, all)
	if err := s.served.generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, core); err != nil {
		return err
	}
	var infos []*genericapiserver.APIGroupInfo
	for _, g := range schemes.Groups() {
		first := schemes.VersionsOf(g.GV.Group)[0]
		if g.GV != corev1.SchemeGroupVersion && all[g.GV] != nil && g.GV == first {
			infos = append(infos, s.group(g.GV, all))
		}
	}
	if err := s.served.generic.InstallAPIGroups(infos...); err != nil {
		return err
	}
	for _, info := range append(infos, core) {
		info.StaticOpenAPISpec = nil // the library keeps the groups in order to close them, and needs no more of them
	}
	return s.serveDocuments()
}

// serveDocuments serves the OpenAPI documents of all that was installed, which nobody may ever ask for.
func (s *Server) serveDocuments() error {
	generic, config := s.served.generic, s.served.openAPI
	config.Routes = generic.Handler.GoRestfulContainer
	docs, err := documents.Serve(config, generic.Handler.NonGoRestfulMux)
	if err != nil {
		return err
	}
	generic.OpenAPIVersionedService, generic.StaticOpenAPISpec = docs.V2, docs.Static
	generic.OpenAPIV3VersionedService = docs.V3
	return nil
}

func (s *Server) addConnecters(core map[string]rest.Storage) {
	services := func(ctx context.Context, name string) (*corev1.Service, error) {
		return registry.Get[corev1.Service](ctx, s.data.stores["services"], request.NamespaceValue(ctx), name)
	}
	nodes, plain := s.ways.kubelets.Locate, s.ways.proxies
	core["pods/log"] = connect.NewLog(s.pod, nodes)
	core["pods/"+timeline.Subresource] = connect.NewTimeline(s.pod, s.data.stores.Namespace, nodes, s.nodeNames)
	core["pods/portforward"] = connect.NewPortForward(s.pod, nodes)
	core["pods/proxy"] = connect.NewPodProxy(s.pod, plain)
	core["nodes/proxy"] = connect.NewNodeProxy(nodes, s.ways.kubelets.Published, plain)
	core["services/proxy"] = connect.NewServiceProxy(services, s.data.stores.Slices, plain)
}

// cluster is what agents of other machines are told of it.
func (s *Server) cluster(ctx context.Context) nodenetwork.Cluster {
	c := nodenetwork.Cluster{ClusterDomain: s.cfg.ClusterDomain, ClusterDNS: s.cfg.ClusterDNS}
	known, _ := s.ServiceNetworks()
	for _, p := range known {
		c.ServiceCIDRs = append(c.ServiceCIDRs, p.String())
	}
	if len(c.ClusterDNS) > 0 {
		return c
	}
	dns, err := registry.Get[corev1.Service](ctx, s.data.stores["services"], names.ServiceNamespace, names.ServiceName)
	if err == nil && dns.Spec.ClusterIP != "" && dns.Spec.ClusterIP != corev1.ClusterIPNone {
		c.ClusterDNS = []string{dns.Spec.ClusterIP}
	}
	return c
}

// pod reads a pod of the request's namespace.
func (s *Server) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	return s.data.stores.Pod(ctx, request.NamespaceValue(ctx), name)
}

// nodeNames lists the names of all nodes.
func (s *Server) nodeNames(ctx context.Context) ([]string, error) {
	obj, err := s.data.stores["nodes"].List(ctx, &metainternal.ListOptions{})
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

func (s *Server) group(gv schema.GroupVersion, all registry.Served) *genericapiserver.APIGroupInfo {
	info := genericapiserver.NewDefaultAPIGroupInfo(gv.Group, s.data.schemes.Scheme, s.data.schemes.Params,
		s.data.schemes.Codecs)
	info.PrioritizedVersions = schemes.VersionsOf(gv.Group)
	info.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{}
	for _, version := range info.PrioritizedVersions {
		info.VersionedResourcesStorageMap[version.Version] = all[version]
	}
	if schemes.IsOwn(gv) {
		info.NegotiatedSerializer = schemes.WithoutProtobuf{NegotiatedSerializer: info.NegotiatedSerializer}
	}
	return &info
}
