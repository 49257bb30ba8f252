// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/serviceips/ranges"
)

// tries is how often an object is looked at anew because somebody else changes it meanwhile.
const tries = 10

// address makes the IPAddress of one address what it should be.
func (k *Keeper) address(ctx context.Context, ip netip.Addr) error {
	var have *networking.IPAddress
	looked := false // have is what is stored
	for range tries {
		owner := k.config.Addresses.Owner(ip)
		step := ranges.Next(owner, have)
		var err error
		switch {
		case step == ranges.Nothing && looked:
			return nil
		case step == ranges.Nothing: // it is not known whether there is one
		case step == ranges.Make: // without a look: a new service's address has none
			have, err = k.make(ctx, ranges.Object(ip, owner))
		default:
			have, err = nil, k.remove(ctx, have)
		}
		if looked = err == nil && step != ranges.Nothing; looked {
			continue
		}
		if err != nil && !overtaken(err) {
			return err
		}
		have, err = read[networking.IPAddress](ctx, k.config.Objects, ip.String())
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		looked = true
	}
	return fmt.Errorf("IPAddress %s: it changes all the time", ip)
}

// read reads one object; nil if there is none.
func read[T any](ctx context.Context, from Store, name string) (*T, error) {
	obj, err := from.Get(from.Within(ctx, ""), name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	o, ok := any(obj).(*T)
	if !ok {
		return nil, fmt.Errorf("the store of %s returned a %T", name, obj)
	}
	return o, nil
}

// overtaken reports whether somebody else was first.
func overtaken(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

func (k *Keeper) make(ctx context.Context, o *networking.IPAddress) (*networking.IPAddress, error) {
	objects := k.config.Objects
	if _, err := objects.Create(objects.Within(ctx, ""), o, rest.ValidateAllObjectFunc,
		&metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return o, nil
}

// remove deletes the very object that was looked at.
func (k *Keeper) remove(ctx context.Context, o *networking.IPAddress) error {
	objects := k.config.Objects
	_, _, err := objects.Delete(objects.Within(ctx, ""), o.Name, rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(o.UID)}})
	return err
}

// oneRange has a ServiceCIDR say what it is, and lets it go when it may.
func (k *Keeper) oneRange(ctx context.Context, name string) error {
	for range tries {
		o, err := read[networking.ServiceCIDR](ctx, k.config.Ranges, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		done, err := k.settleRange(ctx, o)
		if err == nil && done {
			return nil
		}
		if err != nil && !overtaken(err) {
			return err
		}
	}
	return fmt.Errorf("ServiceCIDR %s: it changes all the time", name)
}

// settleRange does one thing to a ServiceCIDR; done says that there is nothing else to do.
func (k *Keeper) settleRange(ctx context.Context, o *networking.ServiceCIDR) (done bool, err error) {
	kept := slices.Contains(o.Finalizers, ranges.Finalizer)
	switch {
	case o.DeletionTimestamp == nil && !kept: // of an earlier version: any update gives it to it
		return false, k.update(ctx, k.config.Ranges, o)
	case o.DeletionTimestamp == nil:
		return true, k.say(ctx, o)
	case !kept: // somebody else's finalizer holds it
		return true, nil
	}
	needs, may := k.config.Addresses.ReleaseRange(o.Name)
	if !may {
		k.config.Log.Debug("a ServiceCIDR stays as long as services have addresses in it", "servicecidr", o.Name,
			"address", needs)
		return true, k.say(ctx, o)
	}
	o = o.DeepCopy()
	o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == ranges.Finalizer })
	return false, k.update(ctx, k.config.Ranges, o)
}

// say writes the condition that a ServiceCIDR is to have, unless it has it.
func (k *Keeper) say(ctx context.Context, o *networking.ServiceCIDR) error {
	condition := ranges.Condition(o.DeletionTimestamp != nil)
	if ranges.Says(o, condition) {
		return nil
	}
	o = o.DeepCopy()
	meta.SetStatusCondition(&o.Status.Conditions, condition)
	return k.update(ctx, k.config.Status, o)
}

func (k *Keeper) update(ctx context.Context, to rest.Updater, o *networking.ServiceCIDR) error {
	_, _, err := to.Update(k.config.Ranges.Within(ctx, ""), o.Name, rest.DefaultUpdatedObjectInfo(runtime.Object(o)),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}
