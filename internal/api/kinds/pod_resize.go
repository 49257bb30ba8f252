// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/podspec"
)

// podResizeRules are those of pods/resize: resources change, and nothing else, whatever the rest of the request says
// (PL-14, PL-23).
func podResizeRules() registry.Rules {
	return registry.Typed[*corev1.Pod]{
		PrepareUpdate: func(pod, old *corev1.Pod) {
			podspec.KeepResize(pod, old)
			if !equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
				pod.Generation++
			}
		},
		ValidateUpdate: func(pod, old *corev1.Pod) field.ErrorList {
			return append(podspec.ValidateResize(pod, old), podspec.Unsupported(pod)...)
		},
	}.Rules()
}

// resizeREST serves pods/resize. Whoever applies through it owns what a resize is about, and nothing else.
type resizeREST struct{ pods registry.Subresource }

var (
	_ rest.Getter                    = resizeREST{}
	_ rest.Patcher                   = resizeREST{}
	_ rest.TableConvertor            = resizeREST{}
	_ rest.ResetFieldsFilterStrategy = resizeREST{}
)

// New implements rest.Storage.
func (r resizeREST) New() runtime.Object { return r.pods.New() }

// Destroy implements rest.Storage; the pods own the connection.
func (r resizeREST) Destroy() {}

// Get implements rest.Getter.
func (r resizeREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.pods.Get(ctx, name, options)
}

// Update implements rest.Updater.
func (r resizeREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.pods.Update(ctx, name, info, create, update, force, options)
}

// ConvertToTable implements rest.TableConvertor.
func (r resizeREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.pods.ConvertToTable(ctx, obj, options)
}

// GetResetFieldsFilter implements rest.ResetFieldsFilterStrategy.
func (r resizeREST) GetResetFieldsFilter() map[fieldpath.APIVersion]fieldpath.Filter {
	of := func(list, name string) *fieldpath.SetMatcher {
		return fieldpath.MakePrefixMatcherOrDie("spec", list, fieldpath.MatchAnyPathElement(), name)
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{"v1": fieldpath.NewIncludeMatcherFilter(
		fieldpath.MakePrefixMatcherOrDie("spec", "resources"),
		of("containers", "resources"), of("containers", "resizePolicy"),
		of("initContainers", "resources"), of("initContainers", "resizePolicy"))}
}
