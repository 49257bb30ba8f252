// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// pluginName is what Kubernetes calls all CSI drivers together.
const pluginName = "kubernetes.io/csi"

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// inlineHandle names the volume that a pod has its driver make.
func inlineHandle(uid, volume string) string { return "csi-" + digest(uid, volume) }

// AttachmentName is the name of the VolumeAttachment of a volume on a node.
func AttachmentName(handle, driver, node string) string { return "csi-" + digest(handle, driver, node) }

// UniqueName is how a node's status names a volume.
func UniqueName(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(pluginName + "/" + driver + "^" + handle)
}

// Paths says where volumes are below the kubelet's folder, which drivers mount at the same place.
type Paths struct{ Folder string }

// Staging is where a driver stages a volume, for all pods of the node.
func (p Paths) Staging(v *Volume) string {
	if v.Block {
		return filepath.Join(p.Folder, "plugins", pluginName, "volumeDevices/staging", v.Name)
	}
	return filepath.Join(p.Folder, "plugins", pluginName, v.Driver, digest(v.Handle), "globalmount")
}

// Target is where a driver publishes a volume for a pod.
func (p Paths) Target(v *Volume, uid string) string {
	if v.Block {
		return filepath.Join(p.Folder, "plugins", pluginName, "volumeDevices/publish", v.Name, uid)
	}
	return filepath.Join(p.Folder, "pods", uid, "volumes/kubernetes.io~csi", v.Name, "mount")
}
