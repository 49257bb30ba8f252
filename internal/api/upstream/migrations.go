// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install" // the strategies' own scheme
	migration "k8s.io/kubernetes/pkg/registry/storagemigration/storagemigration/storage"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// migrationKinds ask for the objects of a kind to be stored anew. Nothing here does it (docs/decisions/054).
func migrationKinds() []*registry.Kind {
	return []*registry.Kind{
		{GV: v1.SchemeGroupVersion, Name: "StorageVersionMigration", Plural: "storageversionmigrations",
			Singular: "storageversionmigration",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := migration.NewREST(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, status), nil
			}},
	}
}
