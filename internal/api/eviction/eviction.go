// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/kubernetes/pkg/apis/policy"

	"github.com/wherryproject/wherry/internal/api/disruption"
	"github.com/wherryproject/wherry/internal/api/podstore"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// tries is how often an eviction is judged anew because the pod or its budget has changed meanwhile.
const tries = 20

// REST serves pods/eviction: a delete that says why, and that disruption budgets may refuse.
type REST struct {
	pods    *registry.REST
	budgets *registry.REST
	charge  rest.Updater // the status of budgets
}

// New serves evictions of pods under budgets; charge writes the status of these.
func New(pods, budgets *registry.REST, charge rest.Updater) REST { return REST{pods, budgets, charge} }

var (
	_ rest.NamedCreater             = REST{}
	_ rest.GroupVersionKindProvider = REST{}
)

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return policyv1.SchemeGroupVersion.WithKind("Eviction")
}

// New implements rest.Storage.
func (REST) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy implements rest.Storage.
func (REST) Destroy() {}

// Create implements rest.NamedCreater.
func (r REST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	eviction, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not an Eviction object: %T", obj))
	}
	if eviction.Name != "" && eviction.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	del := eviction.DeleteOptions
	if del == nil {
		del = &metav1.DeleteOptions{}
	}
	switch {
	case len(del.DryRun) == 0:
		del.DryRun = options.DryRun
	case len(options.DryRun) > 0 && !slices.Equal(del.DryRun, options.DryRun):
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"Non-matching dry-run options in request and content: %v and %v", options.DryRun, del.DryRun))
	}
	if validate != nil {
		if err := validate(ctx, eviction.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	asked := del.Preconditions != nil && del.Preconditions.ResourceVersion != nil
	var err error
	for range tries {
		var budget string
		if budget, err = r.evict(ctx, name, del.DeepCopy()); err == nil {
			return podstore.Success(), nil
		}
		if asked || !apierrors.IsConflict(err) {
			return nil, err
		}
		if budget != "" {
			err = apierrors.NewTimeoutError(fmt.Sprintf(
				"couldn't update PodDisruptionBudget %q due to conflicts", budget), 10)
		}
	}
	return nil, err
}

// evict judges once and does it. A conflict error means that the pod or a budget has changed meanwhile, and
// names the budget if it was one.
func (r REST) evict(ctx context.Context, name string, del *metav1.DeleteOptions) (string, error) {
	namespace := request.NamespaceValue(ctx)
	pod, err := registry.Get[corev1.Pod](ctx, r.pods, namespace, name)
	if err != nil {
		return "", err
	}
	p := &storage.Preconditions{}
	if del.Preconditions != nil {
		p.UID, p.ResourceVersion = del.Preconditions.UID, del.Preconditions.ResourceVersion
	}
	if err := p.Check(name, pod); err != nil { // before a budget is charged
		return "", storeerr.InterpretUpdateError(err, r.pods.DefaultQualifiedResource, name)
	}
	budgets, err := r.budgets.List(r.budgets.Within(ctx, namespace), &metainternal.ListOptions{})
	if err != nil {
		return "", err
	}
	how, err := disruption.Judge(pod, budgets.(*policy.PodDisruptionBudgetList).Items, time.Now())
	if err != nil {
		return "", err
	}
	dry := dryrun.IsDryRun(del.DryRun)
	if how.Budget != nil && !dry {
		_, _, err := r.charge.Update(r.budgets.Within(ctx, namespace), how.Budget.Name,
			rest.DefaultUpdatedObjectInfo(how.Budget), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc,
			false, registry.UpdateOptions())
		if err != nil {
			return how.Budget.Name, err
		}
	}
	if how.Unchanged {
		p.ResourceVersion = &pod.ResourceVersion
	}
	return "", r.remove(ctx, name, p, del, dry)
}

// remove deletes the pod, after its status has the reason.
func (r REST) remove(ctx context.Context, name string, p *storage.Preconditions, del *metav1.DeleteOptions,
	dry bool) error {
	err := podstore.Update(ctx, r.pods.Store, name, p, dry, func(pod *corev1.Pod) error {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded &&
			pod.Status.Phase != corev1.PodFailed {
			podstore.SetCondition(&pod.Status, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
				ObservedGeneration: pod.Generation,
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if del.Preconditions != nil {
		del.Preconditions.ResourceVersion = nil // held when the condition was written
	}
	_, _, err = r.pods.Store.Delete(ctx, name, rest.ValidateAllObjectFunc, del)
	return err
}
