// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// Volume is one volume of a pod as its driver gets it.
type Volume struct {
	Driver, Handle string
	// Name is that of the persistent volume, or of the pod's volume if it is inline.
	Name       string
	Inline     bool
	Block      bool
	ReadOnly   bool
	FSType     string
	MountFlags []string
	Attributes map[string]string
	AccessMode corev1.PersistentVolumeAccessMode
	once       bool // one of its access modes is for one node or pod

	StageSecret, PublishSecret, ExpandSecret *corev1.SecretReference

	Object
}

// Object is what the driver's CSIDriver object says, or what holds without one.
type Object struct {
	Attach          bool // somebody attaches the volume to the node before
	PodInfo         bool // the driver gets the pod's name, namespace, UID and service account
	Republish       bool // it is asked again and again
	Tokens          []storagev1.TokenRequest
	TokensInSecrets bool
	FSGroupPolicy   storagev1.FSGroupPolicy
	modes           []storagev1.VolumeLifecycleMode
}

// ObjectOf reads a CSIDriver; nil: there is none.
func ObjectOf(d *storagev1.CSIDriver) Object {
	o := Object{Attach: true, FSGroupPolicy: storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy,
		modes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}}
	if d == nil {
		return o
	}
	s := &d.Spec
	o.Attach = ptr.Deref(s.AttachRequired, true)
	o.PodInfo = ptr.Deref(s.PodInfoOnMount, false)
	o.Republish = ptr.Deref(s.RequiresRepublish, false)
	o.Tokens, o.TokensInSecrets = s.TokenRequests, ptr.Deref(s.ServiceAccountTokenInSecrets, false)
	o.FSGroupPolicy = ptr.Deref(s.FSGroupPolicy, o.FSGroupPolicy)
	if len(s.VolumeLifecycleModes) > 0 {
		o.modes = s.VolumeLifecycleModes
	}
	return o
}

// allows says why the driver has no volumes of a mode, nil if it has.
func (o *Object) allows(driver string, mode storagev1.VolumeLifecycleMode) error {
	if slices.Contains(o.modes, mode) {
		return nil
	}
	var has []string
	for _, m := range o.modes {
		has = append(has, string(m))
	}
	hint := "use a persistentVolumeClaim"
	if mode == storagev1.VolumeLifecyclePersistent {
		hint = "name the volume in the pod, under volumes[].csi"
	}
	return fmt.Errorf("volume mode %q not supported by driver %s (only supports %s): %s", mode, driver,
		strings.Join(has, ", "), hint)
}

// Persistent is the volume that a persistent volume of a driver is for a pod; readOnly: the pod's use of the claim says
// so. What the volume itself says of it is for who attaches it.
func Persistent(pv *corev1.PersistentVolume, driver *storagev1.CSIDriver, readOnly bool) (Volume, error) {
	s := pv.Spec.CSI
	if s == nil {
		return Volume{}, errors.New("the volume is not one of a CSI driver")
	}
	v := Volume{Driver: s.Driver, Handle: s.VolumeHandle, Name: pv.Name, FSType: s.FSType,
		ReadOnly: readOnly, MountFlags: pv.Spec.MountOptions, Attributes: maps.Clone(s.VolumeAttributes),
		Block:      ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock,
		AccessMode: corev1.ReadWriteOnce, StageSecret: s.NodeStageSecretRef, PublishSecret: s.NodePublishSecretRef,
		ExpandSecret: s.NodeExpandSecretRef, Object: ObjectOf(driver)}
	if len(pv.Spec.AccessModes) > 0 {
		v.AccessMode = pv.Spec.AccessModes[0]
	}
	v.once = slices.ContainsFunc(pv.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteOnce || m == corev1.ReadWriteOncePod
	})
	return v, v.allows(s.Driver, storagev1.VolumeLifecyclePersistent)
}

// Inline is a volume that a pod has its driver make, and that ends with the pod.
func Inline(pod *corev1.Pod, volume *corev1.Volume, driver *storagev1.CSIDriver) (Volume, error) {
	s := volume.CSI
	if s == nil {
		return Volume{}, errors.New("the volume is not one of a CSI driver")
	}
	v := Volume{Driver: s.Driver, Handle: inlineHandle(string(pod.UID), volume.Name), Name: volume.Name, Inline: true,
		ReadOnly: ptr.Deref(s.ReadOnly, false), FSType: ptr.Deref(s.FSType, ""),
		Attributes: maps.Clone(s.VolumeAttributes), AccessMode: corev1.ReadWriteOnce, Object: ObjectOf(driver)}
	v.Attach = false
	if s.NodePublishSecretRef != nil {
		v.PublishSecret = &corev1.SecretReference{Namespace: pod.Namespace, Name: s.NodePublishSecretRef.Name}
	}
	return v, v.allows(s.Driver, storagev1.VolumeLifecycleEphemeral)
}

// OwnsGroup reports whether the node gives the volume's files to the pod's fsGroup; mounter: the driver gets the
// group and does it.
func (v *Volume) OwnsGroup(mounter bool) bool {
	if v.Block || v.ReadOnly || mounter {
		return false
	}
	switch v.FSGroupPolicy {
	case storagev1.FileFSGroupPolicy:
		return true
	case storagev1.NoneFSGroupPolicy:
		return false
	}
	return v.FSType != "" && v.once
}

// Keys of the volume context under which drivers get the pod.
const (
	podName      = "csi.storage.k8s.io/pod.name"
	podNamespace = "csi.storage.k8s.io/pod.namespace"
	podUID       = "csi.storage.k8s.io/pod.uid"
	account      = "csi.storage.k8s.io/serviceAccount.name"
	ephemeral    = "csi.storage.k8s.io/ephemeral"
	// TokensKey is that of the tokens, in the attributes or among the secrets.
	TokensKey = "csi.storage.k8s.io/serviceAccount.tokens"
)

// Context is what a publication passes of the volume and, where the driver wants it, of the pod.
func (v *Volume) Context(pod *corev1.Pod) map[string]string {
	out := maps.Clone(v.Attributes)
	if out == nil {
		out = map[string]string{}
	}
	if v.PodInfo {
		out[podName], out[podNamespace], out[podUID] = pod.Name, pod.Namespace, string(pod.UID)
		out[account], out[ephemeral] = pod.Spec.ServiceAccountName, strconv.FormatBool(v.Inline)
	}
	return out
}
