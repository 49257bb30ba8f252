// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/wherryproject/wherry/internal/controllers/loop"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

const (
	ofClaim  = "claim/"
	ofVolume = "volume/"
)

// binder carries out what is decided about claims and volumes.
type binder struct {
	client  kubernetes.Interface
	loop    *loop.Loop
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	events  *loop.Recorder
}

func newBinder(k *ondemand.Kit) *binder {
	core, storage := k.Informers.Core().V1(), k.Informers.Storage().V1()
	b := &binder{client: k.Client, claims: core.PersistentVolumeClaims().Lister(),
		volumes: core.PersistentVolumes().Lister(), classes: storage.StorageClasses().Lister(),
		events: loop.NewRecorder(k.Client, "persistentvolume-controller")}
	b.loop = loop.New(binderName, k.Log, b.sync)
	b.loop.Watch(core.PersistentVolumeClaims().Informer(), func(obj any) {
		c := obj.(*corev1.PersistentVolumeClaim)
		b.loop.Add(ofClaim + c.Namespace + "/" + c.Name)
		if c.Spec.VolumeName != "" {
			b.loop.Add(ofVolume + c.Spec.VolumeName)
		}
	})
	b.loop.Watch(core.PersistentVolumes().Informer(), func(obj any) {
		v := obj.(*corev1.PersistentVolume)
		b.loop.Add(ofVolume + v.Name)
		if ref := v.Spec.ClaimRef; ref != nil {
			b.loop.Add(ofClaim + ref.Namespace + "/" + ref.Name)
		} else if v.Status.Phase == corev1.VolumeAvailable {
			b.addPending()
		}
	})
	b.loop.Watch(storage.StorageClasses().Informer(), func(any) { b.addPending() })
	return b
}

// addPending has the claims looked at that wait for anything.
func (b *binder) addPending() {
	all, err := b.claims.List(labels.Everything())
	if err != nil {
		return // a lister over memory has none
	}
	for _, c := range all {
		if c.Annotations[storagehelpers.AnnBindCompleted] == "" {
			b.loop.Add(ofClaim + c.Namespace + "/" + c.Name)
		}
	}
}

func (b *binder) run(ctx context.Context) {
	if err := b.events.Run(ctx, b.loop); err != nil && ctx.Err() == nil {
		b.loop.Log.Error("controller ended", "controller", binderName, "err", err)
	}
}

// sync looks at a claim or a volume. The loser of a race is looked at again at its own change.
func (b *binder) sync(ctx context.Context, name string) error {
	var err error
	if volume, ok := strings.CutPrefix(name, ofVolume); ok {
		err = b.syncVolume(ctx, volume)
	} else {
		namespace, claim, _ := strings.Cut(strings.TrimPrefix(name, ofClaim), "/")
		err = b.syncClaim(ctx, namespace, claim)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return loop.Later{Why: err.Error()}
	}
	return err
}

func (b *binder) syncClaim(ctx context.Context, namespace, name string) error {
	claim, err := b.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	f := ClaimFacts{Claim: claim}
	if err == nil {
		f.Volumes, err = b.volumes.List(labels.Everything())
	}
	if err == nil {
		f.Classes, err = b.classes.List(labels.Everything())
	}
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(f.Volumes, func(v *corev1.PersistentVolume) bool {
		return v.Name == claim.Spec.VolumeName
	}); i >= 0 {
		f.Volume = f.Volumes[i]
	}
	step := NextForClaim(f)
	if step.Tell != nil {
		b.events.Event(claim, step.Tell.Type, step.Tell.Reason, step.Tell.Text)
	}
	if step.Bind != nil {
		return b.bind(ctx, claim, step.Bind)
	}
	return b.noteClaim(ctx, claim, step)
}

// noteClaim writes what is decided about a claim that has no volume.
func (b *binder) noteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, step ClaimStep) error {
	changed := claim.DeepCopy()
	if step.Class != "" {
		changed.Spec.StorageClassName = &step.Class
	}
	if step.Provisioner != "" {
		for _, key := range []string{storagehelpers.AnnStorageProvisioner, storagehelpers.AnnBetaStorageProvisioner} {
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, step.Provisioner)
		}
	}
	claims := b.client.CoreV1().PersistentVolumeClaims(claim.Namespace)
	if !equality.Semantic.DeepEqual(claim, changed) {
		var err error
		if changed, err = claims.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if changed.Status.Phase == step.Phase {
		return nil
	}
	changed = changed.DeepCopy()
	changed.Status.Phase = step.Phase
	_, err := claims.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	return err
}

// bind puts claim and volume together: the volume first, which can belong to one claim only.
func (b *binder) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	mine, dirty, err := storagehelpers.GetBindVolumeToClaim(volume, claim)
	if err != nil {
		return err
	}
	volumes := b.client.CoreV1().PersistentVolumes()
	if dirty {
		if mine, err = volumes.Update(ctx, mine, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("bind volume %s to claim %s/%s: %w", volume.Name, claim.Namespace, claim.Name, err)
		}
	}
	if mine.Status.Phase != corev1.VolumeBound {
		if mine, err = b.setPhase(ctx, mine, corev1.VolumeBound, ""); err != nil {
			return err
		}
	}
	changed := claim.DeepCopy()
	if changed.Spec.VolumeName != mine.Name {
		changed.Spec.VolumeName = mine.Name
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, storagehelpers.AnnBoundByController, "yes")
	}
	if changed.Annotations[storagehelpers.AnnBindCompleted] == "" {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
	}
	claims := b.client.CoreV1().PersistentVolumeClaims(claim.Namespace)
	if !equality.Semantic.DeepEqual(claim, changed) {
		if changed, err = claims.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("bind claim %s/%s to volume %s: %w", claim.Namespace, claim.Name, volume.Name, err)
		}
	}
	reported := changed.DeepCopy()
	reported.Status.AccessModes = mine.Spec.AccessModes
	if reported.Status.Phase != corev1.ClaimBound { // later the resizer reports the size
		reported.Status.Phase = corev1.ClaimBound
		reported.Status.Capacity = corev1.ResourceList{
			corev1.ResourceStorage: mine.Spec.Capacity[corev1.ResourceStorage]}
		reported.Status.CurrentVolumeAttributesClassName = mine.Spec.VolumeAttributesClassName
	}
	if equality.Semantic.DeepEqual(changed.Status, reported.Status) {
		return nil
	}
	_, err = claims.UpdateStatus(ctx, reported, metav1.UpdateOptions{})
	return err
}

func (b *binder) syncVolume(ctx context.Context, name string) error {
	volume, err := b.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	f := VolumeFacts{Volume: volume}
	ref := volume.Spec.ClaimRef
	if ref != nil {
		if f.Claim, err = b.claimOf(ctx, ref); err != nil {
			return err
		}
	}
	step := NextForVolume(f)
	if step.Claim {
		b.loop.Add(ofClaim + ref.Namespace + "/" + ref.Name)
	}
	if step.Tell != nil {
		b.events.Event(volume, step.Tell.Type, step.Tell.Reason, step.Tell.Text)
	}
	if step.Unbind {
		return b.unbind(ctx, volume)
	}
	if step.Phase == "" || step.Phase == volume.Status.Phase {
		return nil
	}
	_, err = b.setPhase(ctx, volume, step.Phase, step.Why)
	return err
}

// claimOf is the claim that a volume names. That it is gone is asked of the API server before anything is done about
// it: the informers may be behind.
func (b *binder) claimOf(ctx context.Context, ref *corev1.ObjectReference) (*corev1.PersistentVolumeClaim, error) {
	claim, err := b.claims.PersistentVolumeClaims(ref.Namespace).Get(ref.Name)
	if err == nil && (ref.UID == "" || claim.UID == ref.UID) {
		return claim, nil
	}
	claim, err = b.client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return claim, err
}

func (b *binder) setPhase(ctx context.Context, volume *corev1.PersistentVolume, phase corev1.PersistentVolumePhase,
	why string) (*corev1.PersistentVolume, error) {
	changed := volume.DeepCopy()
	changed.Status.Phase, changed.Status.Message = phase, why
	return b.client.CoreV1().PersistentVolumes().UpdateStatus(ctx, changed, metav1.UpdateOptions{})
}

// unbind takes a claim off a volume that the binder had bound to it.
func (b *binder) unbind(ctx context.Context, volume *corev1.PersistentVolume) error {
	changed := volume.DeepCopy()
	changed.Spec.ClaimRef = nil
	delete(changed.Annotations, storagehelpers.AnnBoundByController)
	changed, err := b.client.CoreV1().PersistentVolumes().Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	_, err = b.setPhase(ctx, changed, corev1.VolumeAvailable, "")
	return err
}
