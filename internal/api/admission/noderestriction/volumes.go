// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/storage"

	"github.com/wherryproject/wherry/internal/api/nodeauth"
	"github.com/wherryproject/wherry/internal/podspec"
)

func judgeCSINode(node string, a admission.Attributes) error {
	name := a.GetName()
	if obj, err := meta.Accessor(a.GetObject()); err == nil && a.GetOperation() == admission.Create {
		name = obj.GetName()
	}
	return nodeauth.RestrictCSINode(node, name)
}

func judgeClaimStatus(node string, a admission.Attributes) error {
	now, ok := a.GetObject().(*core.PersistentVolumeClaim)
	old, had := a.GetOldObject().(*core.PersistentVolumeClaim)
	if a.GetOperation() != admission.Update || a.GetSubresource() != "status" || !ok || !had {
		return fmt.Errorf("unexpected operation %q, node %q may only update the status of its pods' claims",
			a.GetOperation(), node)
	}
	return nodeauth.RestrictClaimStatus(node, now, old)
}

// driverAudiences are those of the tokens that CSI drivers want of a pod that has volumes of theirs.
func (p Plugin) driverAudiences(ctx context.Context, pod *corev1.Pod) (out []string, err error) {
	if pod == nil {
		return nil, nil
	}
	for i := range pod.Spec.Volumes {
		name, err := p.driverOf(ctx, pod, &pod.Spec.Volumes[i])
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		driver, err := got[storage.CSIDriver](ctx, p, "csidrivers", "", name)
		if err != nil {
			return nil, err
		}
		if driver == nil {
			continue
		}
		for _, t := range driver.Spec.TokenRequests {
			out = append(out, t.Audience)
		}
	}
	return out, nil
}

// driverOf is the CSI driver of a pod's volume, "" if it is none of one.
func (p Plugin) driverOf(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (string, error) {
	if v.CSI != nil {
		return v.CSI.Driver, nil
	}
	name := podspec.ClaimName(pod, v)
	if name == "" {
		return "", nil
	}
	claim, err := got[core.PersistentVolumeClaim](ctx, p, "persistentvolumeclaims", pod.Namespace, name)
	if err != nil || claim == nil || claim.Spec.VolumeName == "" {
		return "", err
	}
	volume, err := got[core.PersistentVolume](ctx, p, "persistentvolumes", "", claim.Spec.VolumeName)
	if err != nil || volume == nil || volume.Spec.CSI == nil {
		return "", err
	}
	return volume.Spec.CSI.Driver, nil
}

// got reads an object of a kind that is Kubernetes' own; nil if there is none.
func got[T any](ctx context.Context, p Plugin, plural, namespace, name string) (*T, error) {
	store := p.stores[plural]
	obj, err := store.Get(store.Within(ctx, namespace), name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	typed, ok := any(obj).(*T)
	if !ok {
		return nil, fmt.Errorf("%s %s: unexpected type %T", plural, name, obj)
	}
	return typed, nil
}
