// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/apps/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"        // the strategies' own scheme
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install" // scale
	_ "k8s.io/kubernetes/pkg/apis/core/install"        // pod templates
	controllerrevision "k8s.io/kubernetes/pkg/registry/apps/controllerrevision/storage"
	daemonset "k8s.io/kubernetes/pkg/registry/apps/daemonset/storage"
	deployment "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"
	replicaset "k8s.io/kubernetes/pkg/registry/apps/replicaset/storage"
	statefulset "k8s.io/kubernetes/pkg/registry/apps/statefulset/storage"

	"github.com/wherryproject/wherry/internal/api/registry"
)

func appsKinds() []*registry.Kind {
	gv := v1.SchemeGroupVersion
	return []*registry.Kind{
		{GV: gv, Name: "Deployment", Plural: "deployments", Singular: "deployment", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := deployment.NewStorage(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Deployment.Store, Main: s.Deployment,
					Below: map[string]rest.Storage{"status": s.Status, "scale": s.Scale}}, nil
			}},
		{GV: gv, Name: "ReplicaSet", Plural: "replicasets", Singular: "replicaset", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := replicaset.NewStorage(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.ReplicaSet.Store, Main: s.ReplicaSet,
					Below: map[string]rest.Storage{"status": s.Status, "scale": s.Scale}}, nil
			}},
		{GV: gv, Name: "StatefulSet", Plural: "statefulsets", Singular: "statefulset", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := statefulset.NewStorage(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.StatefulSet.Store, Main: s.StatefulSet,
					Below: map[string]rest.Storage{"status": s.Status, "scale": s.Scale}}, nil
			}},
		{GV: gv, Name: "DaemonSet", Plural: "daemonsets", Singular: "daemonset", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := daemonset.NewREST(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Store, Main: s, Below: map[string]rest.Storage{"status": status}}, nil
			}},
		{GV: gv, Name: "ControllerRevision", Plural: "controllerrevisions", Singular: "controllerrevision",
			Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := controllerrevision.NewREST(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Store, Main: s}, nil
			}},
	}
}
