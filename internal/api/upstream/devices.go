// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	_ "k8s.io/kubernetes/pkg/apis/resource/install" // the strategies' own scheme
	class "k8s.io/kubernetes/pkg/registry/resource/deviceclass/storage"
	taint "k8s.io/kubernetes/pkg/registry/resource/devicetaintrule/storage"
	deviceclaim "k8s.io/kubernetes/pkg/registry/resource/resourceclaim/storage"
	template "k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate/storage"
	slice "k8s.io/kubernetes/pkg/registry/resource/resourceslice/storage"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// deviceKinds say which devices there are and who wants them. Nothing here gives any out (docs/decisions/054).
func deviceKinds() []*registry.Kind {
	gv := v1.SchemeGroupVersion
	return []*registry.Kind{
		{GV: gv, Name: "DeviceClass", Plural: "deviceclasses", Singular: "deviceclass",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := class.NewREST(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, nil), nil
			}},
		{GV: gv, Name: "DeviceTaintRule", Plural: "devicetaintrules", Singular: "devicetaintrule",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := taint.NewRESTv1(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, status), nil
			}},
		{GV: gv, Name: "ResourceClaim", Plural: "resourceclaims", Singular: "resourceclaim", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := deviceclaim.NewREST(o, registry.NamespacesOf(o), registry.RightsOf(o))
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, status), nil
			}},
		{GV: gv, Name: "ResourceClaimTemplate", Plural: "resourceclaimtemplates", Singular: "resourceclaimtemplate",
			Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := template.NewREST(o, registry.NamespacesOf(o))
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, nil), nil
			}},
		{GV: gv, Name: "ResourceSlice", Plural: "resourceslices", Singular: "resourceslice",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := slice.NewREST(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, nil), nil
			}},
	}
}
