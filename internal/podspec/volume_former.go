// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// formerSources are the kinds of volume that Kubernetes once had drivers for and now keeps in its API only.
// Their required fields are still checked.
func formerSources(v *corev1.Volume) []source {
	return []source{
		{"gcePersistentDisk", v.GCEPersistentDisk != nil, func(at *field.Path) errs {
			s := v.GCEPersistentDisk
			return append(required(at.Child("pdName"), s.PDName),
				inRange(at.Child("partition"), s.Partition, 0, 255)...)
		}},
		{"awsElasticBlockStore", v.AWSElasticBlockStore != nil, func(at *field.Path) errs {
			s := v.AWSElasticBlockStore
			return append(required(at.Child("volumeID"), s.VolumeID),
				inRange(at.Child("partition"), s.Partition, 0, 255)...)
		}},
		{"gitRepo", v.GitRepo != nil, func(at *field.Path) errs { return gitRepo(v.GitRepo, at) }},
		{"glusterfs", v.Glusterfs != nil, func(at *field.Path) errs {
			return needs(at, "endpoints", v.Glusterfs.EndpointsName, "path", v.Glusterfs.Path)
		}},
		{"rbd", v.RBD != nil, func(at *field.Path) errs {
			return append(monitors(v.RBD.CephMonitors, at.Child("monitors")),
				required(at.Child("image"), v.RBD.RBDImage)...)
		}},
		{"flexVolume", v.FlexVolume != nil, func(at *field.Path) errs { return flexVolume(v.FlexVolume, at) }},
		{"cinder", v.Cinder != nil, func(at *field.Path) errs {
			all := required(at.Child("volumeID"), v.Cinder.VolumeID)
			if v.Cinder.SecretRef != nil {
				all = append(all, required(at.Child("secretRef").Child("name"), v.Cinder.SecretRef.Name)...)
			}
			return all
		}},
		{"cephfs", v.CephFS != nil,
			func(at *field.Path) errs { return monitors(v.CephFS.Monitors, at.Child("monitors")) }},
		{"flocker", v.Flocker != nil, func(at *field.Path) errs { return flocker(v.Flocker, at) }},
		{"azureFile", v.AzureFile != nil, func(at *field.Path) errs {
			return needs(at, "secretName", v.AzureFile.SecretName, "shareName", v.AzureFile.ShareName)
		}},
		{"vsphereVolume", v.VsphereVolume != nil, func(at *field.Path) errs {
			return needs(at, "volumePath", v.VsphereVolume.VolumePath)
		}},
		{"quobyte", v.Quobyte != nil, func(at *field.Path) errs { return quobyte(v.Quobyte, at) }},
		{"azureDisk", v.AzureDisk != nil, func(at *field.Path) errs { return azureDisk(v.AzureDisk, at) }},
		{"photonPersistentDisk", v.PhotonPersistentDisk != nil, func(at *field.Path) errs {
			return needs(at, "pdID", v.PhotonPersistentDisk.PdID)
		}},
		{"portworxVolume", v.PortworxVolume != nil, func(at *field.Path) errs {
			return needs(at, "volumeID", v.PortworxVolume.VolumeID)
		}},
		{"scaleIO", v.ScaleIO != nil, func(at *field.Path) errs {
			return needs(at, "gateway", v.ScaleIO.Gateway, "system", v.ScaleIO.System, "volumeName",
				v.ScaleIO.VolumeName)
		}},
		{"storageos", v.StorageOS != nil, func(at *field.Path) errs { return storageOS(v.StorageOS, at) }},
	}
}

// needs: pairs of a field's name and its value, which must not be empty.
func needs(at *field.Path, pairs ...string) (all errs) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, required(at.Child(pairs[i]), pairs[i+1])...)
	}
	return all
}

func validLabels(labels map[string]string, at *field.Path) errs {
	return unversioned.ValidateLabels(labels, at)
}

func monitors(list []string, at *field.Path) errs {
	if len(list) == 0 {
		return errs{field.Required(at, "")}
	}
	return nil
}

func gitRepo(s *corev1.GitRepoVolumeSource, at *field.Path) errs {
	all := required(at.Child("repository"), s.Repository)
	return append(all, descending(at.Child("directory"), s.Directory)...)
}

// flexVolume: options that begin with the names Kubernetes uses itself are refused.
func flexVolume(s *corev1.FlexVolumeSource, at *field.Path) errs {
	all := required(at.Child("driver"), s.Driver)
	for key := range s.Options {
		domain, _, _ := strings.Cut(key, "/")
		lower := strings.ToLower("." + domain)
		if strings.Contains(key, "/") && (strings.HasSuffix(lower, ".kubernetes.io") ||
			strings.HasSuffix(lower, ".k8s.io")) {
			all = append(all, field.Invalid(at.Child("options").Key(key), key,
				"kubernetes.io and k8s.io namespaces are reserved"))
		}
	}
	return all
}

func flocker(s *corev1.FlockerVolumeSource, at *field.Path) (all errs) {
	switch {
	case s.DatasetName == "" && s.DatasetUUID == "":
		all = append(all, field.Required(at, "one of datasetName and datasetUUID is required"))
	case s.DatasetName != "" && s.DatasetUUID != "":
		all = append(all,
			field.Invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
	}
	if strings.Contains(s.DatasetName, "/") {
		all = append(all, field.Invalid(at.Child("datasetName"), s.DatasetName, "must not contain '/'"))
	}
	return all
}

func quobyte(s *corev1.QuobyteVolumeSource, at *field.Path) errs {
	all := required(at.Child("volume"), s.Volume)
	switch {
	case s.Registry == "":
		all = append(all, field.Required(at.Child("registry"),
			"must be a host:port pair or multiple pairs separated by commas"))
	default:
		for pair := range strings.SplitSeq(s.Registry, ",") {
			if _, port, ok := strings.Cut(pair, ":"); !ok || port == "" {
				all = append(all, field.Invalid(at.Child("registry"), s.Registry,
					"must be a host:port pair or multiple pairs separated by commas"))
				break
			}
		}
	}
	if len(s.Tenant) > 64 {
		all = append(all, field.TooLong(at.Child("tenant"), s.Tenant, 64))
	}
	return all
}

func azureDisk(s *corev1.AzureDiskVolumeSource, at *field.Path) errs {
	all := required(at.Child("diskName"), s.DiskName)
	all = append(all, required(at.Child("diskURI"), s.DataDiskURI)...)
	all = append(all, oneOfIfSet(at.Child("cachingMode"), s.CachingMode,
		corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)...)
	return append(all, oneOfIfSet(at.Child("kind"), s.Kind,
		corev1.AzureSharedBlobDisk, corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk)...)
}

func storageOS(s *corev1.StorageOSVolumeSource, at *field.Path) errs {
	all := dnsLabel(at.Child("volumeName"), s.VolumeName)
	if s.VolumeNamespace != "" {
		all = append(all, dnsLabel(at.Child("volumeNamespace"), s.VolumeNamespace)...)
	}
	if s.SecretRef != nil {
		all = append(all, required(at.Child("secretRef").Child("name"), s.SecretRef.Name)...)
	}
	return all
}
