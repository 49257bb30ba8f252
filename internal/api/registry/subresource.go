// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Subresource serves GET, PUT and PATCH of a subresource that has the parent's own type, such as status.
type Subresource struct {
	Store   *genericregistry.Store
	charger Charger // nil where no quota counts the kind
}

var (
	_ rest.Getter              = Subresource{}
	_ rest.Patcher             = Subresource{}
	_ rest.TableConvertor      = Subresource{}
	_ rest.ResetFieldsStrategy = Subresource{}
)

// New implements rest.Storage.
func (s Subresource) New() runtime.Object { return s.Store.New() }

// Destroy implements rest.Storage; the parent owns the connection.
func (s Subresource) Destroy() {}

// Get implements rest.Getter.
func (s Subresource) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.Store.Get(ctx, name, options)
}

// Update implements rest.Updater. A subresource never creates its parent.
func (s Subresource) Update(ctx context.Context, name string, obj rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.UpdateBy(ctx, s.Store, name, obj, create, update, options)
}

// UpdateBy is Update through a store with rules of this request. What it adds to the object is charged to the quotas of
// the namespace.
func (s Subresource) UpdateBy(ctx context.Context, store *genericregistry.Store, name string,
	info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	options *metav1.UpdateOptions) (obj runtime.Object, created bool, err error) {
	if s.charger == nil {
		return store.Update(ctx, name, info, create, update, false, options)
	}
	err = s.charger.Creating(ctx, request.NamespaceValue(ctx), func(ctx context.Context) (bool, error) {
		obj, created, err = store.Update(ctx, name, info, create, update, false, options)
		return created, err
	})
	return obj, created, err
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (s Subresource) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.Store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (s Subresource) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return s.Store.ConvertToTable(ctx, obj, options)
}
