// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/rights"
	"github.com/wherryproject/wherry/internal/podspec"
)

// claimed is a volume of a pod whose claim is bound to a folder of a machine; empty: there is none. It is asked only
// where the pod does not say by itself that it is to be judged so.
func (s *Server) claimed(ctx context.Context, pod *corev1.Pod) (volume string, err error) {
	if rights.HostAccess(pod) != "" {
		return "", nil
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		claim := podspec.ClaimName(pod, v)
		if claim == "" {
			continue
		}
		c, err := s.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && c.Spec.VolumeName == "" { // there is nothing in the pod of it
			continue
		}
		if err != nil {
			return "", upstream("read claim "+claim, err)
		}
		bound, err := s.client.CoreV1().PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err): // it may still be there on the node
			return v.Name, nil
		case err != nil:
			return "", upstream("read volume "+c.Spec.VolumeName, err)
		case rights.Folder(bound):
			return v.Name, nil
		}
	}
	return "", nil
}
