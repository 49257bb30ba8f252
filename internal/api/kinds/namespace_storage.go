// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// plainREST is a kind's storage without the deletions; namespaces have their own, and none of a whole collection.
type plainREST interface {
	rest.StorageWithReadiness
	rest.Scoper
	rest.ShortNamesProvider
	rest.SingularNameProvider
	rest.Lister
	rest.Getter
	rest.Creater
	rest.Updater
	rest.Watcher
	rest.StorageVersionProvider
	rest.ResetFieldsStrategy
}

// namespaceREST deletes in two steps: the first delete marks the namespace, which makes the namespace controller empty
// it; when spec.finalizers is empty the object goes.
type namespaceREST struct {
	plainREST
	store *registry.REST
}

var _ rest.GracefulDeleter = (*namespaceREST)(nil)

func newNamespaceREST(store *registry.REST) *namespaceREST {
	return &namespaceREST{plainREST: store, store: store}
}

func emptiedNamespace(ctx context.Context, key string, obj, existing runtime.Object) bool {
	return len(obj.(*corev1.Namespace).Spec.Finalizers) == 0 &&
		genericregistry.ShouldDeleteDuringUpdate(ctx, key, obj, existing)
}

// Delete implements rest.GracefulDeleter.
func (r *namespaceREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, err := r.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	ns := obj.(*corev1.Namespace)
	if options == nil {
		options = metav1.NewDeleteOptions(0)
	}
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	if options.Preconditions.UID == nil {
		options.Preconditions.UID = &ns.UID
	}
	if ns.DeletionTimestamp.IsZero() {
		return r.markTerminating(ctx, name, validate, options)
	}
	if len(ns.Spec.Finalizers) != 0 {
		return ns, false, nil
	}
	return r.store.Delete(ctx, name, validate, options)
}

func (r *namespaceREST) markTerminating(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	key, err := r.store.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	preconditions := &storage.Preconditions{UID: options.Preconditions.UID,
		ResourceVersion: options.Preconditions.ResourceVersion}
	resource := r.store.DefaultQualifiedResource
	out := &corev1.Namespace{}
	err = r.store.Storage.GuaranteedUpdate(ctx, key, out, false, preconditions,
		storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
			ns, ok := existing.(*corev1.Namespace)
			if !ok {
				return nil, apierrors.NewInternalError(storage.NewInvalidObjError(key, "not a namespace"))
			}
			if err := validate(ctx, ns); err != nil {
				return nil, err
			}
			if ns.DeletionTimestamp.IsZero() {
				now := metav1.NewTime(time.Now())
				ns.DeletionTimestamp = &now
			}
			ns.Status.Phase = corev1.NamespaceTerminating
			return ns, nil
		}), dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		return nil, false, storeerr.InterpretUpdateError(err, resource, name)
	}
	return out, false, nil
}

// ConvertToTable implements rest.TableConvertor.
func (r *namespaceREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}

// finalizeREST serves namespaces/finalize: PUT of the namespace's spec.finalizers.
type finalizeREST struct{ store *genericregistry.Store }

var _ rest.Updater = finalizeREST{}

// New implements rest.Storage.
func (finalizeREST) New() runtime.Object { return &corev1.Namespace{} }

// Destroy implements rest.Storage.
func (finalizeREST) Destroy() {}

// Update implements rest.Updater.
func (r finalizeREST) Update(ctx context.Context, name string, obj rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, obj, create, update, false, options)
}
