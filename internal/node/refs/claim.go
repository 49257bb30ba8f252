// SPDX-License-Identifier: Apache-2.0

package refs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Claim gives a claim and the volume that it is bound to, nil if it is not or the volume is gone. The rules for nodes
// let an agent read these by name only, so that each call asks the API server.
func (s *Sources) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim,
	*corev1.PersistentVolume, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	core := s.cfg.Client.CoreV1()
	claim, err := core.PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || claim.Spec.VolumeName == "" {
		return claim, nil, err
	}
	volume, err := core.PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return claim, nil, nil
	}
	return claim, volume, err
}
