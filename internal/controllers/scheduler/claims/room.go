// SPDX-License-Identifier: Apache-2.0

package claims

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// Counts reports whether a CSI driver publishes how much room it has, and wants to be asked for no more
// (spec.storageCapacity; KEP-1472).
func Counts(d *storagev1.CSIDriver) bool { return d != nil && ptr.Deref(d.Spec.StorageCapacity, false) }

// room reports whether the class' driver has room for the claim where the node can reach it. A driver that does not
// publish its room has some; one that does has none where it has published nothing.
func (v *Verdict) room(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node *corev1.Node) bool {
	if !Counts(v.world.Driver(class.Provisioner)) {
		return true
	}
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	for _, r := range v.world.Room() {
		most := r.MaximumVolumeSize
		if most == nil {
			most = r.Capacity
		}
		if r.StorageClassName == class.Name && most != nil && most.Cmp(size) >= 0 && reaches(node, r.NodeTopology) {
			return true
		}
	}
	return false
}

// reaches reports whether a node is one of those that room is for; without a selector it is for none.
func reaches(node *corev1.Node, of *metav1.LabelSelector) bool {
	if of == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(of)
	return err == nil && selector.Matches(labels.Set(node.Labels)) // the API takes none that cannot be read
}
