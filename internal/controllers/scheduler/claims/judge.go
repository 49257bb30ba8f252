// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/podspec"
)

// World is what is known about volumes. What it gives is not changed.
type World struct {
	Claim   func(namespace, name string) *corev1.PersistentVolumeClaim // nil: there is none
	Volume  func(name string) *corev1.PersistentVolume                 // likewise
	Class   func(name string) *storagev1.StorageClass                  // likewise
	Volumes func() []*corev1.PersistentVolume
	Pods    func(namespace string) []*corev1.Pod
	// Limits are how many volumes of each CSI driver a node takes at once, as far as they are known.
	Limits func(node string) map[string]int
	Driver func(name string) *storagev1.CSIDriver // nil: there is none
	Room   func() []*storagev1.CSIStorageCapacity // what the drivers that count their room have
}

// Verdict is what a pod's claims say.
type Verdict struct {
	// Refusal is why the pod can go nowhere yet; it is for the user.
	Refusal string
	fixed   []*corev1.PersistentVolume // the volumes that it has
	late    []*corev1.PersistentVolumeClaim
	world   World
}

// Judge looks at the claims of a pod.
func Judge(pod *corev1.Pod, w World) Verdict {
	v := Verdict{world: w}
	for i := range pod.Spec.Volumes {
		name := podspec.ClaimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		if v.Refusal = v.claim(pod, &pod.Spec.Volumes[i], name); v.Refusal != "" {
			return v
		}
	}
	return v
}

// claim takes in one claim; what it returns is a refusal.
func (v *Verdict) claim(pod *corev1.Pod, volume *corev1.Volume, name string) string {
	c := v.world.Claim(pod.Namespace, name)
	switch {
	case c == nil && volume.Ephemeral != nil:
		return fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
	case c == nil:
		return fmt.Sprintf("persistentvolumeclaim %q not found", name)
	case !podspec.OwnsClaim(pod, volume, c):
		return fmt.Sprintf("PVC %q was not created for pod %q (pod is not owner)", name, pod.Name)
	case c.DeletionTimestamp != nil:
		return fmt.Sprintf("persistentvolumeclaim %q is being deleted", name)
	case c.Status.Phase == corev1.ClaimLost:
		return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name,
			c.Spec.VolumeName)
	}
	if user := v.otherUser(pod, c); user != "" {
		return fmt.Sprintf("pod %q uses PersistentVolumeClaim %q already, whose access mode is ReadWriteOncePod", user,
			name)
	}
	if isBound(c) {
		pv := v.world.Volume(c.Spec.VolumeName)
		if pv == nil {
			return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name,
				c.Spec.VolumeName)
		}
		v.fixed = append(v.fixed, pv)
		return ""
	}
	class := v.world.Class(storagehelpers.GetPersistentVolumeClaimClass(c))
	if c.Spec.VolumeName != "" || class == nil ||
		ptr.Deref(class.VolumeBindingMode, "") != storagev1.VolumeBindingWaitForFirstConsumer {
		return fmt.Sprintf("pod has unbound immediate PersistentVolumeClaims: %s (kubectl describe pvc says why)", name)
	}
	v.late = append(v.late, c)
	return ""
}

func isBound(c *corev1.PersistentVolumeClaim) bool {
	return c.Spec.VolumeName != "" && c.Annotations[storagehelpers.AnnBindCompleted] != ""
}

// otherUser is another pod on a node that has a claim which only one pod may have.
func (v *Verdict) otherUser(pod *corev1.Pod, c *corev1.PersistentVolumeClaim) string {
	if !slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod) {
		return ""
	}
	for _, other := range v.world.Pods(pod.Namespace) {
		ended := other.Status.Phase == corev1.PodSucceeded || other.Status.Phase == corev1.PodFailed
		if other.UID != pod.UID && other.Spec.NodeName != "" && !ended &&
			slices.Contains(podspec.ClaimNames(other), c.Name) {
			return other.Name
		}
	}
	return ""
}

// Fits says why a node will not do, "" if it does.
func (v *Verdict) Fits(node *corev1.Node) string {
	for _, pv := range v.fixed {
		if storagehelpers.CheckNodeAffinity(pv, node.Labels) != nil {
			return "node(s) didn't match PersistentVolume's node affinity"
		}
	}
	if v.full(node.Name) {
		return "node(s) exceed max volume count"
	}
	taken := map[string]*corev1.PersistentVolume{}
	for _, c := range v.late {
		if at := c.Annotations[storagehelpers.AnnSelectedNode]; at != "" && at != node.Name {
			return "node(s) are not where a volume of the pod is being made"
		}
		step, why := v.place(c, node, taken)
		if why != "" {
			return why
		}
		if step.Volume != nil {
			taken[step.Volume.Name] = step.Volume
		}
	}
	return ""
}

// Step is what has to be done with a claim: bind it to a volume that is there, or have one made on a node.
type Step struct {
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume // nil: the claim is given the node
}

// Prepare is what has to be done before the pod is bound to the node; and whether the pod must wait until it has come
// of it that all claims are bound.
func (v *Verdict) Prepare(node *corev1.Node) (steps []Step, wait bool) {
	taken := map[string]*corev1.PersistentVolume{}
	for _, c := range v.late {
		step, _ := v.place(c, node, taken)
		if step.Volume != nil {
			taken[step.Volume.Name] = step.Volume
		}
		if step.Volume == nil && c.Annotations[storagehelpers.AnnSelectedNode] == node.Name ||
			step.Volume != nil && step.Volume.Spec.ClaimRef != nil {
			continue // done; the binder and the provisioner are at it
		}
		steps = append(steps, step)
	}
	return steps, len(v.late) > 0
}

// place decides about a claim that waits for its first consumer.
func (v *Verdict) place(c *corev1.PersistentVolumeClaim, node *corev1.Node,
	taken map[string]*corev1.PersistentVolume) (Step, string) {
	pv, err := storagehelpers.FindMatchingVolume(c, v.world.Volumes(), node, taken, false, true)
	if err == nil && pv != nil {
		return Step{Claim: c, Volume: pv}, ""
	}
	class := v.world.Class(storagehelpers.GetPersistentVolumeClaimClass(c))
	if class == nil || class.Provisioner == storagehelpers.NotSupportedProvisioner {
		return Step{}, "node(s) didn't find available persistent volumes to bind"
	}
	// Where the volume is being made already, the driver has taken the room, or gives the node back.
	if c.Annotations[storagehelpers.AnnSelectedNode] != node.Name && !v.room(c, class, node) {
		return Step{}, "node(s) did not have enough free storage"
	}
	return Step{Claim: c}, ""
}
