// SPDX-License-Identifier: Apache-2.0

package customresources

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// Charger holds custom resources to the quotas of their namespaces.
type Charger interface {
	// Creating calls write when it is its turn in the namespace; write tells whether it has made a new object.
	Creating(ctx context.Context, namespace string, write func(context.Context) (bool, error)) error
	// Charge charges what a write takes, or refuses it. ctx is that of Creating.
	Charge(ctx context.Context, a admission.Attributes) error
	// Gone is called when something of a namespace has been deleted.
	Gone(namespace string)
}

// chargedOpen opens storages whose writes are charged.
func chargedOpen(open generic.StorageDecorator, q Charger) generic.StorageDecorator {
	if q == nil {
		return open
	}
	return func(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc, trigger storage.IndexerFuncs,
		indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		s, destroy, err := open(config, prefix, key, newFunc, newListFunc, attrs, trigger, indexers)
		return chargedStorage{s, config.GroupResource, q}, destroy, err
	}
}

// chargedStorage charges what is written. It does so here and not as a plug-in of admission because the library that
// serves custom resources has no place for a turn around both; subresources, too, write through it.
type chargedStorage struct {
	storage.Interface
	resource schema.GroupResource
	quotas   Charger
}

// Create implements storage.Interface.
func (s chargedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return s.quotas.Creating(ctx, namespaceOf(obj), func(ctx context.Context) (bool, error) {
		if err := s.charge(ctx, obj, nil); err != nil {
			return false, err
		}
		err := s.Interface.Create(ctx, key, obj, out, ttl)
		return err == nil, err
	})
}

// GuaranteedUpdate implements storage.Interface.
func (s chargedStorage) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	return s.quotas.Creating(ctx, request.NamespaceValue(ctx), func(ctx context.Context) (bool, error) {
		return false, s.Interface.GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions,
			func(in runtime.Object, m storage.ResponseMeta) (runtime.Object, *uint64, error) {
				out, ttl, err := update(in, m)
				if err == nil {
					err = s.charge(ctx, out, in)
				}
				return out, ttl, err
			}, cached)
	})
}

// Delete implements storage.Interface.
func (s chargedStorage) Delete(ctx context.Context, key string, out runtime.Object,
	preconditions *storage.Preconditions, validate storage.ValidateObjectFunc, cached runtime.Object,
	opts storage.DeleteOptions) error {
	err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
	if err == nil {
		s.quotas.Gone(namespaceOf(out))
	}
	return err
}

// charge charges an object that is new, or that changes from old.
func (s chargedStorage) charge(ctx context.Context, obj, old runtime.Object) error {
	op := admission.Update
	if m, err := meta.Accessor(old); err != nil || m.GetUID() == "" { // also an update that makes it
		op, old = admission.Create, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		who = &user.DefaultInfo{Name: user.APIServerUser}
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	return s.quotas.Charge(ctx, admission.NewAttributesRecord(obj, old, kind, m.GetNamespace(), m.GetName(),
		s.resource.WithVersion(kind.Version), "", op, nil, false, who))
}

func namespaceOf(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetNamespace()
}

// namespaced are the resources of all definitions whose objects are in namespaces. It waits until these are known.
func (r *Server) namespaced(ctx context.Context) ([]schema.GroupResource, error) {
	informer := r.crds.Informers.Apiextensions().V1().CustomResourceDefinitions().Informer()
	if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
		return nil, ctx.Err()
	}
	var all []schema.GroupResource
	for _, o := range informer.GetStore().List() {
		if d, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok &&
			d.Spec.Scope == apiextensionsv1.NamespaceScoped {
			all = append(all, schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural})
		}
	}
	return all, nil
}
