// SPDX-License-Identifier: Apache-2.0

package podstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
)

// Update changes a stored pod outside the rules for users; change may refuse with an API error.
func Update(ctx context.Context, store *genericregistry.Store, name string, p *storage.Preconditions, dry bool,
	change func(*corev1.Pod) error) error {
	key, err := store.KeyFunc(ctx, name)
	if err != nil {
		return err
	}
	err = store.Storage.GuaranteedUpdate(ctx, key, &corev1.Pod{}, false, p,
		storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			pod, ok := obj.(*corev1.Pod)
			if !ok {
				return nil, fmt.Errorf("the store holds a %T where pod %s should be", obj, name)
			}
			return pod, change(pod)
		}), dry, nil)
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return err
	}
	return storeerr.InterpretUpdateError(err, store.DefaultQualifiedResource, name)
}

// Success is what a subresource answers that has changed a pod.
func Success() *metav1.Status {
	return &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}
}

// SetCondition adds or replaces a condition; the time of the last change moves only when the status does.
func SetCondition(s *corev1.PodStatus, c corev1.PodCondition) {
	c.LastTransitionTime = metav1.Now()
	for i := range s.Conditions {
		if have := &s.Conditions[i]; have.Type == c.Type {
			if have.Status == c.Status {
				c.LastTransitionTime = have.LastTransitionTime
			}
			*have = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}
