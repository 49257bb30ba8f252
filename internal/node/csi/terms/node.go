// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

const (
	// NodeIDs is the annotation of a node with its names at its drivers.
	NodeIDs = "csi.volume.kubernetes.io/nodeid"
	// Managed is the annotation of a node that leaves it to a controller to attach volumes.
	Managed = "volumes.kubernetes.io/controller-managed-attach-detach"
)

// Identity is what a driver says of the node.
type Identity struct {
	Driver   string
	NodeID   string
	Topology map[string]string
	Most     int64 // volumes at once; 0: it does not say
}

// Check says what is wrong with it.
func (i *Identity) Check() error {
	switch {
	case i.NodeID == "":
		return fmt.Errorf("driver %s does not say what it calls this node (NodeGetInfo without node_id)", i.Driver)
	case len(i.NodeID) > 256:
		return fmt.Errorf("driver %s calls this node by a name of %d bytes: 256 are allowed", i.Driver, len(i.NodeID))
	}
	return nil
}

// Entry is its entry in the node's CSINode.
func (i *Identity) Entry() storagev1.CSINodeDriver {
	d := storagev1.CSINodeDriver{Name: i.Driver, NodeID: i.NodeID,
		TopologyKeys: slices.Sorted(maps.Keys(i.Topology))}
	if i.Most > 0 {
		most := int32(min(i.Most, 1<<31-1))
		d.Allocatable = &storagev1.VolumeNodeResources{Count: &most}
	}
	return d
}

// MergeDrivers puts the drivers that are on the node into the list of a CSINode; gone are those that were and have
// left. An entry cannot be changed, only taken out and put in again: where one differs, the list comes without it first
// and again is true.
func MergeDrivers(have []storagev1.CSINodeDriver, here []Identity, gone []string) (
	out []storagev1.CSINodeDriver, changed, again bool) {
	want := map[string]storagev1.CSINodeDriver{}
	for i := range here {
		want[here[i].Driver] = here[i].Entry()
	}
	for _, d := range have {
		now, is := want[d.Name]
		delete(want, d.Name)
		switch {
		case is && same(d, now), !is && !slices.Contains(gone, d.Name):
			out = append(out, d)
		default:
			changed, again = true, again || is
		}
	}
	if again {
		return out, true, true
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		out, changed = append(out, want[name]), true
	}
	return out, changed, false
}

func same(a, b storagev1.CSINodeDriver) bool {
	return a.NodeID == b.NodeID && equality.Semantic.DeepEqual(a.Allocatable, b.Allocatable) &&
		slices.Equal(slices.Sorted(slices.Values(a.TopologyKeys)), b.TopologyKeys)
}

// NodeMeta is the labels and annotations that the node gets, nil where it has them: an annotation that is nil goes. A
// label that the node has with another value is a conflict that an administrator has to resolve.
func NodeMeta(node *corev1.Node, here []Identity, gone []string) (labels map[string]string,
	annotations map[string]any, err error) {
	labels, annotations = map[string]string{}, map[string]any{}
	ids := map[string]string{}
	if text := node.Annotations[NodeIDs]; text != "" {
		if err := json.Unmarshal([]byte(text), &ids); err != nil || ids == nil {
			ids = map[string]string{} // somebody else's nonsense is replaced
		}
	}
	before := maps.Clone(ids)
	for _, name := range gone {
		delete(ids, name)
	}
	for _, i := range here {
		ids[i.Driver] = i.NodeID
		for key, value := range i.Topology {
			if was, has := node.Labels[key]; has && was != value {
				return nil, nil, fmt.Errorf("driver %s says that the node has %s=%s, and its label is %s: take the "+
					"label away (kubectl label node %s %s-), or mend the driver's settings", i.Driver, key, value, was,
					node.Name, key)
			} else if !has {
				labels[key] = value
			}
		}
	}
	if !maps.Equal(ids, before) || len(ids) > 0 && node.Annotations[NodeIDs] == "" {
		annotations[NodeIDs] = nil
		if len(ids) > 0 {
			text, err := json.Marshal(ids)
			if err != nil {
				return nil, nil, err
			}
			annotations[NodeIDs] = string(text)
		}
	}
	if len(here) > 0 && node.Annotations[Managed] != "true" {
		annotations[Managed] = "true"
	}
	return labels, annotations, nil
}

// Missing says that no driver of a name is on the node, and which ones are.
func Missing(driver string, here []string) error {
	has := "this node has none; start the driver's pod on it, or use a persistentVolumeClaim of class wherry-local"
	if len(here) > 0 {
		slices.Sort(here)
		has = "this node has " + strings.Join(here, ", ") + "; start the driver's pod on it, or name one of these"
	}
	return fmt.Errorf("kubernetes.io/csi: driver name %s not found in the list of registered CSI drivers: %s", driver,
		has)
}
