// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

func debugRunRules() registry.Rules {
	return registry.Typed[*debugrun.DebugRun]{
		Validate: validation.ValidateDebugRun,
		ValidateUpdate: func(run, old *debugrun.DebugRun) field.ErrorList {
			all := validation.ValidateDebugRun(run)
			if !equality.Semantic.DeepEqual(run.Spec, old.Spec) {
				all = append(all, field.Forbidden(field.NewPath("spec"), "records cannot be changed"))
			}
			return all
		},
	}.Rules()
}

func debugRunStatusRules() registry.Rules {
	return registry.Typed[*debugrun.DebugRun]{
		PrepareUpdate:  func(run, old *debugrun.DebugRun) { run.Spec = old.Spec },
		ValidateUpdate: func(run, _ *debugrun.DebugRun) field.ErrorList { return validation.ValidateDebugRun(run) },
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.Rules()
}

func debugRunFields(obj runtime.Object) fields.Set {
	spec := &obj.(*debugrun.DebugRun).Spec
	return fields.Set{
		"spec.kind": string(spec.Kind), "spec.pod.name": spec.Pod.Name, "spec.pod.uid": string(spec.Pod.UID),
		"spec.container": spec.Container, "spec.user": spec.User,
	}
}

// keptREST is a kind's storage without the ways to write: clients read and delete.
type keptREST interface {
	rest.StorageWithReadiness
	rest.Scoper
	rest.ShortNamesProvider
	rest.SingularNameProvider
	rest.Lister
	rest.Getter
	rest.Watcher
	rest.GracefulDeleter
	rest.CollectionDeleter
	rest.StorageVersionProvider
}

// debugRunREST serves debugruns.
type debugRunREST struct{ keptREST }

// ownStatus serves a status that only this process writes.
type ownStatus struct{ registry.Subresource }

// Update implements rest.Updater.
func (s ownStatus) Update(ctx context.Context, name string, obj rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if u, ok := request.UserFrom(ctx); !ok || u.GetName() != user.APIServerUser &&
		u.GetName() != rbac.DebugRunController {
		return nil, false, apierrors.NewForbidden(s.Store.DefaultQualifiedResource, name,
			fmt.Errorf("only the server writes records; you can read and delete them"))
	}
	return s.Subresource.Update(ctx, name, obj, create, update, force, options)
}
