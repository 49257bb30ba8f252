// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"fmt"
	"strconv"
	"strings"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// Ability is what a driver's node service can do.
type Ability struct {
	Stage, Expand, Stats, Group, SingleWriters bool
}

// AbilityOf reads it.
func AbilityOf(list []*spec.NodeServiceCapability) (a Ability) {
	for _, c := range list {
		switch c.GetRpc().GetType() {
		case spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME:
			a.Stage = true
		case spec.NodeServiceCapability_RPC_EXPAND_VOLUME:
			a.Expand = true
		case spec.NodeServiceCapability_RPC_GET_VOLUME_STATS:
			a.Stats = true
		case spec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP:
			a.Group = true
		case spec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER:
			a.SingleWriters = true
		}
	}
	return a
}

// Capability is how a volume is to be accessed; group is the pod's fsGroup for drivers that see to it, "" for others.
func (v *Volume) Capability(a Ability, group string) *spec.VolumeCapability {
	c := &spec.VolumeCapability{AccessMode: &spec.VolumeCapability_AccessMode{Mode: accessMode(v.AccessMode, a)}}
	if v.Block {
		c.AccessType = &spec.VolumeCapability_Block{Block: &spec.VolumeCapability_BlockVolume{}}
		return c
	}
	c.AccessType = &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{FsType: v.FSType,
		MountFlags: v.MountFlags, VolumeMountGroup: group}}
	return c
}

// accessMode: drivers with the capability SINGLE_NODE_MULTI_WRITER have access modes of their own.
func accessMode(m corev1.PersistentVolumeAccessMode, a Ability) spec.VolumeCapability_AccessMode_Mode {
	switch m {
	case corev1.ReadOnlyMany:
		return spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case corev1.ReadWriteMany:
		return spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case corev1.ReadWriteOncePod:
		if a.SingleWriters {
			return spec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
	default:
		if a.SingleWriters {
			return spec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
		}
	}
	return spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}

// Group is the fsGroup that a driver gets; "" for none.
func Group(pod *corev1.Pod, a Ability) string {
	if sc := pod.Spec.SecurityContext; a.Group && sc != nil && sc.FSGroup != nil {
		return strconv.FormatInt(*sc.FSGroup, 10)
	}
	return ""
}

// CheckDriver says what is wrong with what a driver calls itself and the versions of registration that it speaks.
func CheckDriver(name string, versions []string) error {
	if name == "" || len(name) > 63 || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.')
	}) || strings.Trim(name, "-.") != name || strings.Contains(name, "..") {
		return fmt.Errorf("%q is not the name of a CSI driver: it has 1 to 63 letters, digits, '-' and '.', and begins "+
			"and ends with a letter or digit, for example ebs.csi.example.com", name)
	}
	for _, v := range versions {
		if major, _, _ := strings.Cut(strings.TrimPrefix(v, "v"), "."); major == "1" {
			return nil
		}
	}
	return fmt.Errorf("driver %s speaks versions %v of CSI: this node speaks version 1", name, versions)
}
