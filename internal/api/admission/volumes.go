// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/helper"
	"k8s.io/kubernetes/pkg/apis/storage"
	storageutil "k8s.io/kubernetes/pkg/apis/storage/util"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// Finalizers of what is in use, as Kubernetes has them.
const (
	claimInUse  = "kubernetes.io/pvc-protection"
	volumeInUse = "kubernetes.io/pv-protection"
)

// volumes gives claims the default class, keeps what is in use from being deleted at once, and lets claims grow whose
// class allows it. Kubernetes does so in DefaultStorageClass, StorageObjectInUseProtection and
// PersistentVolumeClaimResize, which bring the kubelet's code along.
type volumes struct{ classes *registry.REST }

var (
	_ admission.MutationInterface   = volumes{}
	_ admission.ValidationInterface = volumes{}
)

// Handles implements admission.Interface.
func (volumes) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Admit implements admission.MutationInterface.
func (p volumes) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Create || a.GetSubresource() != "" {
		return nil
	}
	switch o := a.GetObject().(type) {
	case *core.PersistentVolume:
		o.Finalizers = with(o.Finalizers, volumeInUse)
	case *core.PersistentVolumeClaim:
		o.Finalizers = with(o.Finalizers, claimInUse)
		if helper.PersistentVolumeClaimHasClass(o) {
			return nil
		}
		list, err := p.classes.List(p.classes.Within(ctx, ""), &metainternal.ListOptions{})
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("read the storage classes: %w", err))
		}
		c := newestDefault(list.(*storage.StorageClassList).Items,
			func(c *storage.StorageClass) (*metav1.ObjectMeta, bool) {
				return &c.ObjectMeta, storageutil.IsDefaultAnnotation(c.ObjectMeta)
			})
		if c != nil {
			o.Spec.StorageClassName = &c.Name
		}
	}
	return nil
}

func with(list []string, item string) []string {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}

// Validate implements admission.ValidationInterface.
func (p volumes) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Update || a.GetSubresource() != "" {
		return nil
	}
	claim, ok := a.GetObject().(*core.PersistentVolumeClaim)
	old, was := a.GetOldObject().(*core.PersistentVolumeClaim)
	if !ok || !was {
		return nil
	}
	size, before := claim.Spec.Resources.Requests[core.ResourceStorage],
		old.Spec.Resources.Requests[core.ResourceStorage]
	if size.Cmp(before) <= 0 {
		return nil
	}
	if old.Status.Phase != core.ClaimBound {
		return admission.NewForbidden(a, errors.New("Only bound persistent volume claims can be expanded"))
	}
	name := helper.GetPersistentVolumeClaimClass(claim)
	if name != "" && name == helper.GetPersistentVolumeClaimClass(old) {
		obj, err := p.classes.Get(p.classes.Within(ctx, ""), name, &metav1.GetOptions{})
		switch class, ok := obj.(*storage.StorageClass); {
		case err != nil && !apierrors.IsNotFound(err):
			return apierrors.NewInternalError(fmt.Errorf("read storage class %s: %w", name, err))
		case err == nil && ok && class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion:
			return nil
		}
	}
	return admission.NewForbidden(a, errors.New("only dynamically provisioned pvc can be resized and "+
		"the storageclass that provisions the pvc must support resize"))
}
