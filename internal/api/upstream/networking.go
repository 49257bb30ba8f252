// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/networking/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/networking/install" // the strategies' own scheme
	ingress "k8s.io/kubernetes/pkg/registry/networking/ingress/storage"
	ingressclass "k8s.io/kubernetes/pkg/registry/networking/ingressclass/storage"
	ipaddress "k8s.io/kubernetes/pkg/registry/networking/ipaddress/storage"
	networkpolicy "k8s.io/kubernetes/pkg/registry/networking/networkpolicy/storage"
	servicecidr "k8s.io/kubernetes/pkg/registry/networking/servicecidr/storage"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// Plurals of the kinds that say where the addresses of services come from, and whose each is.
const (
	ServiceCIDRs = "servicecidrs"
	IPAddresses  = "ipaddresses"
)

func networkingKinds() []*registry.Kind {
	gv := v1.SchemeGroupVersion
	return []*registry.Kind{
		{GV: gv, Name: "Ingress", Plural: "ingresses", Singular: "ingress", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := ingress.NewREST(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Store, Main: s, Below: map[string]rest.Storage{"status": status}}, nil
			}},
		{GV: gv, Name: "IngressClass", Plural: "ingressclasses", Singular: "ingressclass",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := ingressclass.NewREST(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Store, Main: s}, nil
			}},
		{GV: gv, Name: "NetworkPolicy", Plural: "networkpolicies", Singular: "networkpolicy", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := networkpolicy.NewREST(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Store, Main: s}, nil
			}},
		{GV: gv, Name: "ServiceCIDR", Plural: ServiceCIDRs, Singular: "servicecidr",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := servicecidr.NewREST(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Store, Main: s, Below: map[string]rest.Storage{"status": status}}, nil
			}},
		{GV: gv, Name: "IPAddress", Plural: IPAddresses, Singular: "ipaddress",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := ipaddress.NewREST(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Store, Main: s}, nil
			}},
	}
}
