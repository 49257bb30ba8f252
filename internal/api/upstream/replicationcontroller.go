// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	controller "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// replicationKinds are the ReplicationController, which Deployments have taken the place of.
func replicationKinds() []*registry.Kind {
	return []*registry.Kind{
		{GV: v1.SchemeGroupVersion, Name: "ReplicationController", Plural: "replicationcontrollers",
			Singular: "replicationcontroller", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := controller.NewStorage(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Controller.Store, Main: s.Controller,
					Below: map[string]rest.Storage{"status": s.Status, "scale": s.Scale}}, nil
			}},
	}
}
