// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/quota"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// quotaAdmission holds new objects to the ResourceQuotas of their namespace (SC-16), and those that may come to take
// more when they change. It is the last plug-in: what it lets pass is charged.
type quotaAdmission struct{ quotas *Quotas }

var _ admission.ValidationInterface = quotaAdmission{}

// Admission is the plug-in that charges quotas, and refuses what they have no room for.
func (q *Quotas) Admission() admission.Interface { return quotaAdmission{q} }

// Handles implements admission.Interface.
func (quotaAdmission) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (p quotaAdmission) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	c := creationIn(ctx, a.GetNamespace())
	if _, custom := a.GetObject().(runtime.Unstructured); c == nil && custom && a.IsDryRun() {
		// Custom resources are charged where they are stored, and this one will not be.
		c = &creation{namespace: a.GetNamespace()}
		defer c.end()
	}
	if c == nil {
		return nil
	}
	if a.GetSubresource() != "" && (a.GetOperation() != admission.Update || registry.FromInside(ctx)) {
		// what a node reports of its pods is the case, whether there is room for it or not: it is counted, not refused
		return nil
	}
	if a.GetResource().GroupResource() == coordinationv1.Resource("leases") && registry.FromInside(ctx) {
		return nil // by which nodes show that they live
	}
	return p.quotas.admit(ctx, a, c)
}

// admit charges what a write takes, or refuses it. The write is under way: c has its turn from here on.
func (q *Quotas) admit(ctx context.Context, a admission.Attributes, c *creation) error {
	if has, err := q.ruled.Has(ctx, a.GetNamespace()); err != nil || !has {
		return err
	}
	obj, err := q.versioned(a.GetObject(), a.GetKind().GroupVersion())
	if err != nil {
		return err
	}
	item := charging{now: quota.Item{Resource: a.GetResource().GroupResource(), Object: obj}}
	if a.GetOperation() == admission.Update {
		old, err := q.versioned(a.GetOldObject(), a.GetKind().GroupVersion())
		if err != nil {
			return err
		}
		item.old = &quota.Item{Resource: item.now.Resource, Object: old}
		if !quota.Grows(item.now, *item.old) {
			return nil
		}
	}
	if err := c.begin(ctx, q); err != nil {
		return err
	}
	for {
		err := q.charge(ctx, a, item, c)
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return err
		}
		// Somebody changed a quota meanwhile; of several, some may have been charged.
		if _, err := q.recount(ctx, a.GetNamespace(), true); err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
}

// versioned is an object as it is counted. A custom resource is what it is.
func (q *Quotas) versioned(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	if _, ok := obj.(runtime.Unstructured); ok {
		return obj, nil
	}
	return q.types.Versioned(obj, gv)
}

// charging is a new object, or one that changes from old.
type charging struct {
	now quota.Item
	old *quota.Item
	why string // it takes something, where that is not plain
}

// refusal is why it does not fit.
func (i charging) refusal(err error) error {
	if i.why == "" {
		return err
	}
	return fmt.Errorf("%s: %w", i.why, err)
}

// of is what is used of a quota with it, or why it does not fit.
func (i charging) of(q *corev1.ResourceQuota) (corev1.ResourceList, error) {
	if i.old != nil {
		return quota.Change(q, i.now, *i.old)
	}
	return quota.Charge(q, i.now)
}

// charge writes into the quotas that concern an object what they will have used with it. The caller's write has the
// namespace's turn, so that what is charged cannot be counted as missing before the object is there.
func (q *Quotas) charge(ctx context.Context, a admission.Attributes, item charging, c *creation) error {
	matching := func(all []corev1.ResourceQuota) []corev1.ResourceQuota {
		return slices.DeleteFunc(all, func(r corev1.ResourceQuota) bool { return !quota.Matches(&r, item.now) })
	}
	all, err := q.list(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	charged, err := chargeAll(matching(all), item)
	if err != nil {
		// Perhaps only because something that has gone is not taken off yet: nothing is refused without counting.
		if all, err = q.recount(ctx, a.GetNamespace(), !a.IsDryRun()); err != nil {
			return err
		}
		if charged, err = chargeAll(matching(all), item); err != nil {
			return admission.NewForbidden(a, item.refusal(err))
		}
	}
	if a.IsDryRun() {
		return nil
	}
	if len(charged) > 0 {
		c.charged++
	}
	for i := range charged {
		if err := q.write(ctx, &charged[i]); err != nil {
			return err
		}
	}
	return nil
}

// chargeAll returns the quotas an object changes, as they are then, or everything that is against it.
func chargeAll(all []corev1.ResourceQuota, item charging) (changed []corev1.ResourceQuota, _ error) {
	var refused []error
	for i := range all {
		if !quota.UpToDate(&all[i]) {
			refused = append(refused, fmt.Errorf("status unknown for quota: %s", all[i].Name))
			continue
		}
		used, err := item.of(&all[i])
		if err != nil {
			refused = append(refused, err)
			continue
		}
		if !quota.Same(used, all[i].Status.Used) {
			after := all[i].DeepCopy()
			after.Status.Used = used
			changed = append(changed, *after)
		}
	}
	if err := errors.NewAggregate(refused); err != nil {
		return nil, err
	}
	return changed, nil
}
