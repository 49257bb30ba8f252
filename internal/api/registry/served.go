// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Served is what the server answers for, by group and path below it ("pods", "pods/log").
type Served map[schema.GroupVersion]map[string]rest.Storage

// Add serves something at a path, in place of what was there.
func (v Served) Add(gv schema.GroupVersion, path string, storage rest.Storage) {
	if v[gv] == nil {
		v[gv] = map[string]rest.Storage{}
	}
	v[gv][path] = storage
}
