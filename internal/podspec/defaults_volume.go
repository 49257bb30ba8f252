// SPDX-License-Identifier: Apache-2.0

package podspec

import corev1 "k8s.io/api/core/v1"

const (
	defaultFileMode     int32 = 0o644
	defaultTokenSeconds int64 = 60 * 60
	defaultCertSeconds  int32 = 24 * 60 * 60
)

func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if s := v.HostPath; s != nil {
		orPointTo(&s.Type, corev1.HostPathUnset)
	}
	if s := v.ConfigMap; s != nil {
		orPointTo(&s.DefaultMode, defaultFileMode)
	}
	if s := v.Secret; s != nil {
		orPointTo(&s.DefaultMode, defaultFileMode)
	}
	if s := v.DownwardAPI; s != nil {
		orPointTo(&s.DefaultMode, defaultFileMode)
		defaultDownwardItems(s.Items)
	}
	if s := v.Projected; s != nil {
		defaultProjected(s)
	}
	if s := v.Image; s != nil {
		orElse(&s.PullPolicy, pullPolicyFor(s.Reference))
	}
	if s := v.Ephemeral; s != nil && s.VolumeClaimTemplate != nil {
		orPointTo(&s.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		RoundAmounts(s.VolumeClaimTemplate.Spec.Resources.Limits)
		RoundAmounts(s.VolumeClaimTemplate.Spec.Resources.Requests)
	}
	defaultRemoteVolume(v)
}

func defaultProjected(s *corev1.ProjectedVolumeSource) {
	orPointTo(&s.DefaultMode, defaultFileMode)
	for i := range s.Sources {
		source := &s.Sources[i]
		if source.DownwardAPI != nil {
			defaultDownwardItems(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			orPointTo(&source.ServiceAccountToken.ExpirationSeconds, defaultTokenSeconds)
		}
		if source.PodCertificate != nil {
			orPointTo(&source.PodCertificate.MaxExpirationSeconds, defaultCertSeconds)
		}
	}
}

func defaultDownwardItems(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		defaultFieldRef(items[i].FieldRef)
	}
}

// defaultRemoteVolume completes the sources that need a storage system; this node refuses them (see
// Unsupported), but the object is to read as Kubernetes would have it.
func defaultRemoteVolume(v *corev1.Volume) {
	if s := v.ISCSI; s != nil {
		orElse(&s.ISCSIInterface, "default")
	}
	if s := v.RBD; s != nil {
		orElse(&s.RBDPool, "rbd")
		orElse(&s.RadosUser, "admin")
		orElse(&s.Keyring, "/etc/ceph/keyring")
	}
	if s := v.AzureDisk; s != nil {
		orPointTo(&s.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		orPointTo(&s.Kind, corev1.AzureSharedBlobDisk)
		orPointTo(&s.FSType, "ext4")
		orPointTo(&s.ReadOnly, false)
	}
	if s := v.ScaleIO; s != nil {
		orElse(&s.StorageMode, "ThinProvisioned")
		orElse(&s.FSType, "xfs")
	}
}
