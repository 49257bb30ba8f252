// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wherryproject/wherry/internal/controllers/loop"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Finalizers that admission gives, as Kubernetes has them.
const (
	claimInUse  = "kubernetes.io/pvc-protection"
	volumeInUse = "kubernetes.io/pv-protection"
)

// uses reports whether a pod keeps a claim from being deleted. (Pure.) One without a node does not: no node starts a
// pod with a claim that is being deleted. The claim of an ephemeral volume goes when nothing of its pod runs any more.
func uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	ended := pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil &&
		*pod.DeletionGracePeriodSeconds == 0
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if podspec.ClaimName(pod, v) == claim.Name && podspec.OwnsClaim(pod, v, claim) &&
			(v.Ephemeral == nil || !ended) {
			return true
		}
	}
	return false
}

// without is the list of finalizers without one of them.
func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(f string) bool { return f == name })
}

// keepClaims lets claims go that nobody uses.
func keepClaims(k *ondemand.Kit) func(context.Context) {
	core := k.Informers.Core().V1()
	claims, pods := core.PersistentVolumeClaims().Lister(), core.Pods().Lister()
	l := loop.New(claimsName, k.Log, func(ctx context.Context, name string) error {
		namespace, name, _ := strings.Cut(name, "/")
		claim, err := claims.PersistentVolumeClaims(namespace).Get(name)
		if apierrors.IsNotFound(err) || err == nil && (claim.DeletionTimestamp == nil ||
			!slices.Contains(claim.Finalizers, claimInUse)) {
			return nil
		}
		if err != nil {
			return err
		}
		known, err := pods.Pods(namespace).List(labels.Everything())
		if err != nil || slices.ContainsFunc(known, func(p *corev1.Pod) bool { return uses(p, claim) }) {
			return err
		}
		// The informer may be behind: the last word is the API server's.
		list, err := k.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if uses(&list.Items[i], claim) {
				return nil
			}
		}
		changed := claim.DeepCopy()
		changed.Finalizers = without(claim.Finalizers, claimInUse)
		_, err = k.Client.CoreV1().PersistentVolumeClaims(namespace).Update(ctx, changed, metav1.UpdateOptions{})
		return lostRace(err)
	})
	l.Watch(core.PersistentVolumeClaims().Informer(), func(obj any) {
		if c := obj.(*corev1.PersistentVolumeClaim); c.DeletionTimestamp != nil {
			l.Add(c.Namespace + "/" + c.Name)
		}
	})
	l.Watch(core.Pods().Informer(), func(obj any) {
		pod := obj.(*corev1.Pod)
		for _, name := range podspec.ClaimNames(pod) {
			l.Add(pod.Namespace + "/" + name)
		}
	})
	return running(l)
}

// keepVolumes lets volumes go that no claim is bound to.
func keepVolumes(k *ondemand.Kit) func(context.Context) {
	volumes := k.Informers.Core().V1().PersistentVolumes()
	l := loop.New(volumesName, k.Log, func(ctx context.Context, name string) error {
		v, err := volumes.Lister().Get(name)
		if apierrors.IsNotFound(err) || err == nil && (v.DeletionTimestamp == nil ||
			v.Status.Phase == corev1.VolumeBound || !slices.Contains(v.Finalizers, volumeInUse)) {
			return nil
		}
		if err != nil {
			return err
		}
		changed := v.DeepCopy()
		changed.Finalizers = without(v.Finalizers, volumeInUse)
		_, err = k.Client.CoreV1().PersistentVolumes().Update(ctx, changed, metav1.UpdateOptions{})
		return lostRace(err)
	})
	l.Watch(volumes.Informer(), func(obj any) {
		if v := obj.(*corev1.PersistentVolume); v.DeletionTimestamp != nil {
			l.Add(v.Name)
		}
	})
	return running(l)
}

// lostRace: who changed the object first has made an event of it.
func lostRace(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsConflict(err) {
		return loop.Later{Why: err.Error()}
	}
	return err
}

func running(l *loop.Loop) func(context.Context) {
	return func(ctx context.Context) {
		if err := l.Run(ctx); err != nil && ctx.Err() == nil {
			l.Log.Error("controller ended", "controller", l.Name, "err", err)
		}
	}
}
