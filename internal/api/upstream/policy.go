// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/policy/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/policy/install" // the strategies' own scheme
	budget "k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget/storage"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// Budgets is the plural of the kind that says how many pods may be away at a time.
const Budgets = "poddisruptionbudgets"

func policyKinds() []*registry.Kind {
	return []*registry.Kind{
		{GV: v1.SchemeGroupVersion, Name: "PodDisruptionBudget", Plural: Budgets, Singular: "poddisruptionbudget",
			Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := budget.NewREST(o)
				if err != nil {
					return nil, err
				}
				return &registry.Foreign{Store: s.Store, Main: s, Below: map[string]rest.Storage{"status": status}}, nil
			}},
	}
}
