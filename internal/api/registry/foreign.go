// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/onwrite"
)

// Foreign is an opened kind whose rules are not ours but Kubernetes' own: strategies, subresources, tables.
type Foreign struct {
	Store *genericregistry.Store
	Main  rest.StandardStorage    // what stands on the store and answers for the kind
	Below map[string]rest.Storage // subresources by name
}

// getter gives the options of one kind, whoever asks.
type getter struct {
	backend *Backend
	kind    *Kind
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g getter) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	o := g.backend.options(g.kind)
	o.Decorator = g.backend.openLate
	return o, nil
}

func (b *Backend) openForeign(k *Kind) (*REST, error) {
	f, err := k.Foreign(getter{b, k})
	if err != nil {
		return nil, fmt.Errorf("storage of %s: %w", k.Plural, err)
	}
	if s, ok := f.Main.(rest.ShortNamesProvider); ok {
		k.Short = s.ShortNames()
	}
	if c, ok := f.Main.(rest.CategoriesProvider); ok {
		k.Categories = c.Categories()
	}
	return &REST{Store: f.Store, Kind: k, OnWrite: onwrite.Of(f.Store), foreign: f}, nil
}

// Below are the subresources of a kind with rules that are not ours, by name. What they add to an object is charged.
func (r *REST) Below() map[string]rest.Storage {
	all := map[string]rest.Storage{}
	if r.foreign == nil {
		return all
	}
	for name, s := range r.foreign.Below {
		all[name] = s
		if w, ok := s.(subresource); ok {
			all[name] = belowOf(r, w)
		}
	}
	return all
}

// subresource is what all of Kubernetes' subresources that take writes can do.
type subresource interface {
	rest.Storage
	rest.Patcher
	rest.TableConvertor
}

// charged charges what a subresource adds to an object.
type charged struct {
	subresource
	of *REST
}

// Update implements rest.Updater.
func (s charged) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, mayCreate bool,
	options *metav1.UpdateOptions) (obj runtime.Object, created bool, err error) {
	if s.of.Charger == nil {
		return s.subresource.Update(ctx, name, info, create, update, mayCreate, options)
	}
	err = s.of.Charger.Creating(ctx, request.NamespaceValue(ctx), func(ctx context.Context) (bool, error) {
		obj, created, err = s.subresource.Update(ctx, name, info, create, update, mayCreate, options)
		return created, err
	})
	return obj, created, err
}

// belowOf wraps a subresource, and lets show through what else it tells the library.
func belowOf(r *REST, s subresource) rest.Storage {
	c := charged{s, r}
	switch also := s.(type) {
	case rest.GroupVersionKindProvider:
		return struct {
			charged
			rest.GroupVersionKindProvider
		}{c, also}
	case rest.ResetFieldsStrategy:
		return struct {
			charged
			rest.ResetFieldsStrategy
		}{c, also}
	}
	return c
}

// writes is what carries out writes.
func (r *REST) writes() rest.StandardStorage {
	if r.foreign == nil {
		return r.Store
	}
	return r.foreign.Main
}
