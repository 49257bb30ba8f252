// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// scales is how a controller finds and sets the size of anything that has one, custom resources too. What is served is
// asked for when a kind is wanted that was not known.
func scales(k *ondemand.Kit) (meta.ResettableRESTMapper, scale.ScalesGetter, error) {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(k.Client.Discovery()))
	getter, err := scale.NewForConfig(k.Config, mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(k.Client.Discovery()))
	return mapper, getter, err
}
