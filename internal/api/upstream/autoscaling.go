// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/autoscaling/v1"
	v2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	autoscaler "k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler/storage"

	"github.com/wherryproject/wherry/internal/api/registry"
)

func autoscalingKinds() []*registry.Kind {
	return []*registry.Kind{
		{GV: v2.SchemeGroupVersion, Also: []schema.GroupVersion{v1.SchemeGroupVersion},
			Name: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler",
			Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := autoscaler.NewREST(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Store, Main: s, Below: map[string]rest.Storage{"status": status}}, nil
			}},
	}
}
