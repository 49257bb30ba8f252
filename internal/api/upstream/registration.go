// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apiserver/scheme"
	apiservice "k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// APIServices is the plural of the kind that says which server answers for a group and version.
const APIServices = "apiservices"

func registrationKinds() []*registry.Kind {
	return []*registry.Kind{
		{GV: v1.SchemeGroupVersion, Name: "APIService", Plural: APIServices, Singular: "apiservice",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s := apiservice.NewREST(scheme.Scheme, o)
				s.TableConvertor = s // its columns are not the store's
				return &registry.Foreign{Store: s.Store, Main: s,
					Below: map[string]rest.Storage{"status": apiservice.NewStatusREST(scheme.Scheme, s)}}, nil
			}},
	}
}
