// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/kubernetes/pkg/apis/core"
)

// RestrictCSINode decides about a node's write of a CSINode; name is that of what would be stored or deleted.
func RestrictCSINode(node, name string) error {
	if name != node {
		return fmt.Errorf("node %q can only change the CSINode of its own name, not %q", node, name)
	}
	return nil
}

// RestrictClaimStatus decides about a node's write of a claim's status: it may tell of a volume's growth, and change
// nothing else.
func RestrictClaimStatus(node string, now, old *core.PersistentVolumeClaim) error {
	now, old = now.DeepCopy(), old.DeepCopy()
	for _, c := range []*core.PersistentVolumeClaim{now, old} {
		c.Status.Capacity, c.Status.Conditions = nil, nil
		c.Status.AllocatedResources, c.Status.AllocatedResourceStatuses = nil, nil
		c.ManagedFields, c.ResourceVersion, c.Generation = nil, "", 0
	}
	if !equality.Semantic.DeepEqual(now, old) {
		return fmt.Errorf("node %q is not allowed to update fields other than status.capacity, status.conditions, "+
			"status.allocatedResources and status.allocatedResourceStatuses", node)
	}
	return nil
}
