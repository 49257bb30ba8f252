// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/storage"

	"github.com/wherryproject/wherry/internal/api/nodeauth"
)

// mayReadVolume reports whether a persistent volume belongs to the claim of a pod on the node.
func (n *nodeAuthorizer) mayReadVolume(ctx context.Context, node, name string) (bool, error) {
	obj, err := n.stores["persistentvolumes"].Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	volume, ok := obj.(*core.PersistentVolume)
	if err != nil || !ok {
		return false, err
	}
	return n.hasVolume(ctx, node, volume)
}

func (n *nodeAuthorizer) hasVolume(ctx context.Context, node string, volume *core.PersistentVolume) (bool, error) {
	if volume.Spec.ClaimRef == nil {
		return false, nil
	}
	claim := nodeauth.Ref{Kind: nodeauth.Claim, Namespace: volume.Spec.ClaimRef.Namespace,
		Name: volume.Spec.ClaimRef.Name}
	if n.has(node, claim) {
		return true, nil
	}
	return n.lookUp(ctx, node, claim)
}

// isAttachment reports whether a VolumeAttachment is of the node.
func (n *nodeAuthorizer) isAttachment(ctx context.Context, node, name string) (bool, error) {
	obj, err := n.stores["volumeattachments"].Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	attachment, ok := obj.(*storage.VolumeAttachment)
	return ok && attachment.Spec.NodeName == node, err
}

// ofVolumes reports whether a secret is for the driver of a volume that a pod on the node has.
func (n *nodeAuthorizer) ofVolumes(ctx context.Context, node string, secret nodeauth.Ref) (found bool, err error) {
	volumes := n.stores["persistentvolumes"]
	list, err := volumes.List(volumes.Within(ctx, ""), &metainternal.ListOptions{})
	if err != nil {
		return false, err
	}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		v, ok := obj.(*core.PersistentVolume)
		if found || !ok || v.Spec.CSI == nil || !namesSecret(v.Spec.CSI, secret) {
			return nil
		}
		var err error
		found, err = n.hasVolume(ctx, node, v)
		return err
	})
	return found, err
}

// namesSecret: those for the driver's controller are not for nodes.
func namesSecret(s *core.CSIPersistentVolumeSource, secret nodeauth.Ref) bool {
	for _, ref := range []*core.SecretReference{s.NodeStageSecretRef, s.NodePublishSecretRef, s.NodeExpandSecretRef} {
		if ref != nil && ref.Namespace == secret.Namespace && ref.Name == secret.Name {
			return true
		}
	}
	return false
}
