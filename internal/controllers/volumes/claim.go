// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	storageutil "k8s.io/kubernetes/pkg/apis/storage/util"
	"k8s.io/utils/ptr"
)

// Message is an event.
type Message struct{ Type, Reason, Text string }

func normal(reason, format string, args ...any) *Message {
	return &Message{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)}
}

func warning(reason, format string, args ...any) *Message {
	return &Message{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)}
}

// ClaimFacts are what is known about a claim.
type ClaimFacts struct {
	Claim   *corev1.PersistentVolumeClaim
	Volume  *corev1.PersistentVolume   // the one that the claim names; nil: there is none of that name
	Volumes []*corev1.PersistentVolume // all there are
	Classes []*storagev1.StorageClass
}

// ClaimStep is what is to be done for a claim.
type ClaimStep struct {
	Bind        *corev1.PersistentVolume          // to this volume
	Phase       corev1.PersistentVolumeClaimPhase // if it is not bound
	Class       string                            // give it this class
	Provisioner string                            // have this provisioner make a volume
	Tell        *Message
}

// NextForClaim decides about a claim.
func NextForClaim(f ClaimFacts) ClaimStep {
	switch {
	case f.Claim.Annotations[storagehelpers.AnnBindCompleted] != "":
		return bound(f)
	case f.Claim.Spec.VolumeName != "":
		return named(f)
	}
	return unbound(f)
}

// bound: the claim has had its volume, and nothing may take its place.
func bound(f ClaimFacts) ClaimStep {
	lost := func(reason, text string) ClaimStep {
		s := ClaimStep{Phase: corev1.ClaimLost}
		if f.Claim.Status.Phase != corev1.ClaimLost {
			s.Tell = warning(reason, "%s", text)
		}
		return s
	}
	switch v := f.Volume; {
	case f.Claim.Spec.VolumeName == "":
		return lost("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
	case v == nil:
		return lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	case v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID == f.Claim.UID:
		return ClaimStep{Bind: v}
	}
	return lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
}

// named: a person chose the volume.
func named(f ClaimFacts) ClaimStep {
	v, wait := f.Volume, ClaimStep{Phase: corev1.ClaimPending}
	switch {
	case v == nil:
		wait.Tell = normal("FailedBinding", "volume %q does not exist yet: the claim waits for it",
			f.Claim.Spec.VolumeName)
	case v.Spec.ClaimRef == nil:
		if why := unfit(f.Claim, v); why != "" {
			wait.Tell = warning("VolumeMismatch", "Cannot bind to requested volume %q: %s", v.Name, why)
			return wait
		}
		return ClaimStep{Bind: v}
	case storagehelpers.IsVolumeBoundToClaim(v, f.Claim):
		return ClaimStep{Bind: v}
	default:
		wait.Tell = warning("FailedBinding", "volume %q already bound to a different claim.", v.Name)
	}
	return wait
}

// unfit says why a volume will not do for a claim.
func unfit(c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) string {
	want, has := c.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]
	switch {
	case has.Cmp(want) < 0:
		return "requested PV is too small"
	case storagehelpers.GetPersistentVolumeClass(v) != storagehelpers.GetPersistentVolumeClaimClass(c):
		return "storageClassName does not match"
	case storagehelpers.CheckVolumeModeMismatches(&c.Spec, &v.Spec):
		return "incompatible volumeMode"
	case !storagehelpers.CheckAccessModes(c, v):
		return "incompatible accessMode"
	case ptr.Deref(v.Spec.VolumeAttributesClassName, "") != ptr.Deref(c.Spec.VolumeAttributesClassName, ""):
		return "volumeAttributesClassName does not match"
	}
	return ""
}

// unbound: a volume that is there is taken, or one is made.
func unbound(f ClaimFacts) ClaimStep {
	c := f.Claim
	name := storagehelpers.GetPersistentVolumeClaimClass(c)
	class := classNamed(f.Classes, name)
	late := class != nil && ptr.Deref(class.VolumeBindingMode, "") == storagev1.VolumeBindingWaitForFirstConsumer
	fits := slices.DeleteFunc(slices.Clone(f.Volumes), func(v *corev1.PersistentVolume) bool {
		return !storagehelpers.CheckAccessModes(c, v)
	})
	// A selector that cannot be read is refused by validation.
	if v, err := storagehelpers.FindMatchingVolume(c, fits, nil, nil, late, true); err == nil && v != nil {
		return ClaimStep{Bind: v}
	}
	wait := ClaimStep{Phase: corev1.ClaimPending}
	if c.Spec.StorageClassName == nil && name == "" { // a default that came later is for claims that are there
		if d := defaultClass(f.Classes); d != nil {
			return ClaimStep{Phase: corev1.ClaimPending, Class: d.Name}
		}
	}
	switch {
	case name == "":
		wait.Tell = normal("FailedBinding",
			"no persistent volumes available for this claim and no storage class is set%s", offer(f.Classes))
	case class == nil:
		wait.Tell = warning("ProvisioningFailed", "storageclass.storage.k8s.io %q not found%s", name, offer(f.Classes))
	case late && !storagehelpers.IsDelayBindingProvisioning(c):
		wait.Tell = normal("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
	case class.Provisioner == storagehelpers.NotSupportedProvisioner:
		wait.Tell = normal("FailedBinding", "no volume of class %q fits, and the class makes none: create a "+
			"PersistentVolume of this class with at least the size and the access modes of the claim", name)
	default:
		wait.Provisioner = class.Provisioner
		if c.Annotations[storagehelpers.AnnStorageProvisioner] != class.Provisioner {
			wait.Tell = normal("ExternalProvisioning", "Waiting for a volume to be created by provisioner %q",
				class.Provisioner)
		}
	}
	return wait
}

// offer names the classes that there are.
func offer(classes []*storagev1.StorageClass) string {
	if len(classes) == 0 {
		return "; there is no StorageClass: create one, or a PersistentVolume that fits"
	}
	var names []string
	for _, c := range classes {
		if isDefault(c) {
			names = append(names, c.Name+" (default)")
		} else {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return "; there are the classes: " + strings.Join(names, ", ")
}

func classNamed(all []*storagev1.StorageClass, name string) *storagev1.StorageClass {
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func isDefault(c *storagev1.StorageClass) bool {
	return storageutil.IsDefaultAnnotation(c.ObjectMeta)
}

// defaultClass is the newest of the defaults.
func defaultClass(all []*storagev1.StorageClass) (best *storagev1.StorageClass) {
	for _, c := range all {
		if isDefault(c) && (best == nil || best.CreationTimestamp.Before(&c.CreationTimestamp) ||
			best.CreationTimestamp.Equal(&c.CreationTimestamp) && c.Name < best.Name) {
			best = c
		}
	}
	return best
}
