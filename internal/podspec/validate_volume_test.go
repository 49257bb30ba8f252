// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumeOf replaces the first volume's source.
func volumeOf(s corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes[0].VolumeSource = s }
}

func TestValidateVolumes(t *testing.T) {
	const v0 = "spec.volumes[0]"
	conf := func(change func(*corev1.ConfigMapVolumeSource)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(p.Spec.Volumes[1].ConfigMap) }
	}
	info := func(f corev1.DownwardAPIVolumeFile) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes[4].DownwardAPI.Items[0] = f }
	}
	name := &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}
	checkSpoiled(t, []spoiled{
		{"no name", func(p *corev1.Pod) { p.Spec.Volumes[0].Name = "" }, v0 + ".name", requiredErr, ""},
		{"name", func(p *corev1.Pod) { p.Spec.Volumes[0].Name = "a.b" }, v0 + ".name", invalidErr, "must not contain dots"},
		{"names alike", func(p *corev1.Pod) { p.Spec.Volumes[1].Name = "scratch" }, "spec.volumes[1].name", duplicateErr, ""},
		{"no source", volumeOf(corev1.VolumeSource{}), v0, requiredErr, "must specify a volume type"},
		{"two sources", func(p *corev1.Pod) { p.Spec.Volumes[0].HostPath = &corev1.HostPathVolumeSource{Path: "/"} }, v0 + ".hostPath", forbiddenErr, "may not specify more than 1 volume type"},
		{"emptyDir size", volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(quantity("-1"))}}), v0 + ".emptyDir.sizeLimit", forbiddenErr, ""},
		{"emptyDir mode", volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Mode: new(int32(0o2000))}}), v0 + ".emptyDir.mode", invalidErr, "01777"},
		{"hostPath no path", volumeOf(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), v0 + ".hostPath.path", requiredErr, ""},
		{"hostPath backsteps", volumeOf(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a/../b"}}), v0 + ".hostPath.path", invalidErr, "must not contain '..'"},
		{"hostPath type", volumeOf(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a", Type: new(corev1.HostPathType("Dir"))}}), v0 + ".hostPath.type", notSupportedErr, "DirectoryOrCreate"},
		{"configMap no name", conf(func(s *corev1.ConfigMapVolumeSource) { s.Name = "" }), "spec.volumes[1].configMap.name", requiredErr, ""},
		{"configMap mode", conf(func(s *corev1.ConfigMapVolumeSource) { s.DefaultMode = new(int32(0o1000)) }), "spec.volumes[1].configMap.defaultMode", invalidErr, "must be a number between 0 and 0777 (octal), both inclusive"},
		{"configMap user", conf(func(s *corev1.ConfigMapVolumeSource) { s.DefaultUser = new(int64(-1)) }), "spec.volumes[1].configMap.defaultUser", invalidErr, ""},
		{"item key", conf(func(s *corev1.ConfigMapVolumeSource) { s.Items[0].Key = "" }), "spec.volumes[1].configMap.items[0].key", requiredErr, ""},
		{"item no path", conf(func(s *corev1.ConfigMapVolumeSource) { s.Items[0].Path = "" }), "spec.volumes[1].configMap.items[0].path", requiredErr, ""},
		{"item absolute path", conf(func(s *corev1.ConfigMapVolumeSource) { s.Items[0].Path = "/a" }), "spec.volumes[1].configMap.items[0].path", invalidErr, "must be a relative path"},
		{"item path out", conf(func(s *corev1.ConfigMapVolumeSource) { s.Items[0].Path = "a/../../b" }), "spec.volumes[1].configMap.items[0].path", invalidErr, "must not contain '..'"},
		{"item dotted path", conf(func(s *corev1.ConfigMapVolumeSource) { s.Items[0].Path = "..data" }), "spec.volumes[1].configMap.items[0].path", invalidErr, "must not start with '..'"},
		{"item mode", conf(func(s *corev1.ConfigMapVolumeSource) { s.Items[0].Mode = new(int32(-1)) }), "spec.volumes[1].configMap.items[0].mode", invalidErr, ""},
		{"item user", conf(func(s *corev1.ConfigMapVolumeSource) { s.Items[0].User = new(int64(-1)) }), "spec.volumes[1].configMap.items[0].user", invalidErr, ""},
		{"secret no name", func(p *corev1.Pod) { p.Spec.Volumes[2].Secret.SecretName = "" }, "spec.volumes[2].secret.secretName", requiredErr, ""},
		{"secret mode", func(p *corev1.Pod) { p.Spec.Volumes[2].Secret.DefaultMode = new(int32(0o7777)) }, "spec.volumes[2].secret.defaultMode", invalidErr, ""},
		{"downward nothing", info(corev1.DownwardAPIVolumeFile{Path: "a"}), "spec.volumes[4].downwardAPI.items[0]", requiredErr, "one of fieldRef and resourceFieldRef is required"},
		{"downward both", info(corev1.DownwardAPIVolumeFile{Path: "a", FieldRef: name, ResourceFieldRef: &corev1.ResourceFieldSelector{}}), "spec.volumes[4].downwardAPI.items[0]", invalidErr, "can not be specified simultaneously"},
		{"downward no path", info(corev1.DownwardAPIVolumeFile{FieldRef: name}), "spec.volumes[4].downwardAPI.items[0].path", requiredErr, ""},
		{"downward field", info(corev1.DownwardAPIVolumeFile{Path: "a", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}), "spec.volumes[4].downwardAPI.items[0].fieldRef.fieldPath", notSupportedErr, "metadata.labels"},
		{"downward container", info(corev1.DownwardAPIVolumeFile{Path: "a", ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}), "spec.volumes[4].downwardAPI.items[0].resourceFieldRef.containerName", requiredErr, ""},
		{"downward mode", info(corev1.DownwardAPIVolumeFile{Path: "a", FieldRef: name, Mode: new(int32(512))}), "spec.volumes[4].downwardAPI.items[0].mode", invalidErr, ""},
		{"image no reference", volumeOf(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{PullPolicy: "Never"}}), v0 + ".image.reference", requiredErr, ""},
		{"image pull policy", volumeOf(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "a", PullPolicy: "x"}}), v0 + ".image.pullPolicy", notSupportedErr, ""},
	})
}

func TestValidateProjectedVolumes(t *testing.T) {
	const source = "spec.volumes[5].projected.sources[0]"
	sources := func(list ...corev1.VolumeProjection) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes[5].Projected.Sources = list }
	}
	token := func(change func(*corev1.ServiceAccountTokenProjection)) func(*corev1.Pod) {
		t := &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3600))}
		change(t)
		return sources(corev1.VolumeProjection{ServiceAccountToken: t})
	}
	cert := func(change func(*corev1.PodCertificateProjection)) func(*corev1.Pod) {
		c := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519", CredentialBundlePath: "b"}
		change(c)
		return sources(corev1.VolumeProjection{PodCertificate: c})
	}
	conf := &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Items: []corev1.KeyToPath{{Key: "a", Path: "x/a"}}}
	checkSpoiled(t, []spoiled{
		{"mode", func(p *corev1.Pod) { p.Spec.Volumes[5].Projected.DefaultMode = new(int32(-1)) }, "spec.volumes[5].projected.defaultMode", invalidErr, ""},
		{"nothing", sources(corev1.VolumeProjection{}), source, requiredErr, ""},
		{"two", sources(corev1.VolumeProjection{ConfigMap: conf, Secret: &corev1.SecretProjection{}}), source + ".configMap", forbiddenErr, "more than 1"},
		{"configMap no name", sources(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{}}), source + ".configMap.name", requiredErr, ""},
		{"secret no name", sources(corev1.VolumeProjection{Secret: &corev1.SecretProjection{}}), source + ".secret.name", requiredErr, ""},
		{"same path twice", sources(corev1.VolumeProjection{ConfigMap: conf}, corev1.VolumeProjection{ConfigMap: conf}), "spec.volumes[5].projected.sources[1].configMap.items[0].path", invalidErr, "conflicting duplicate paths"},
		{"file where a folder is", sources(corev1.VolumeProjection{ConfigMap: conf}, corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "x"}}), "spec.volumes[5].projected.sources[1].serviceAccountToken.path", invalidErr, "conflicting duplicate paths"},
		{"downward", sources(corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "a"}}}}), source + ".downwardAPI.items[0]", requiredErr, ""},
		{"token path", token(func(t *corev1.ServiceAccountTokenProjection) { t.Path = "" }), source + ".serviceAccountToken.path", requiredErr, ""},
		{"token short", token(func(t *corev1.ServiceAccountTokenProjection) { t.ExpirationSeconds = new(int64(599)) }), source + ".serviceAccountToken.expirationSeconds", invalidErr, "less than 10 minutes"},
		{"token long", token(func(t *corev1.ServiceAccountTokenProjection) { t.ExpirationSeconds = new(int64(1<<32 + 1)) }), source + ".serviceAccountToken.expirationSeconds", invalidErr, "2^32"},
		{"bundle of nobody", sources(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "a"}}), source + ".clusterTrustBundle", requiredErr, "either name or signerName"},
		{"bundle of two", sources(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "a", Name: new("a"), SignerName: new("b.c/d")}}), source + ".clusterTrustBundle", invalidErr, "only one of"},
		{"bundle name and labels", sources(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "a", Name: new("a"), LabelSelector: &metav1.LabelSelector{}}}), source + ".clusterTrustBundle.labelSelector", invalidErr, ""},
		{"bundle signer", sources(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "a", SignerName: new("b")}}), source + ".clusterTrustBundle.signerName", invalidErr, ""},
		{"certificate signer", cert(func(c *corev1.PodCertificateProjection) { c.SignerName = "" }), source + ".podCertificate.signerName", requiredErr, ""},
		{"certificate key", cert(func(c *corev1.PodCertificateProjection) { c.KeyType = "DSA" }), source + ".podCertificate.keyType", notSupportedErr, "ED25519"},
		{"certificate short", cert(func(c *corev1.PodCertificateProjection) { c.MaxExpirationSeconds = new(int32(1)) }), source + ".podCertificate.maxExpirationSeconds", invalidErr, "3600"},
		{"certificate nowhere", cert(func(c *corev1.PodCertificateProjection) { c.CredentialBundlePath = "" }), source + ".podCertificate", requiredErr, "at least one"},
		{"certificate path", cert(func(c *corev1.PodCertificateProjection) { c.KeyPath = "/k" }), source + ".podCertificate.keyPath", invalidErr, "relative"},
		{"certificate notes", cert(func(c *corev1.PodCertificateProjection) { c.UserAnnotations = map[string]string{"a": ""} }), source + ".podCertificate.userAnnotations[a]", invalidErr, "domain"},
	})
}

func TestValidateMounts(t *testing.T) {
	const m0, d0 = "spec.containers[0].volumeMounts[0]", "spec.containers[0].volumeDevices[0]"
	mount := func(change func(*corev1.VolumeMount)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(&mainOf(p).VolumeMounts[0]) }
	}
	device := func(list ...corev1.VolumeDevice) func(*corev1.Pod) {
		return func(p *corev1.Pod) { mainOf(p).VolumeDevices = list }
	}
	checkSpoiled(t, []spoiled{
		{"no name", mount(func(m *corev1.VolumeMount) { m.Name = "" }), m0 + ".name", requiredErr, ""},
		{"unknown volume", mount(func(m *corev1.VolumeMount) { m.Name = "none" }), m0 + ".name", notFoundErr, `"none"`},
		{"no path", mount(func(m *corev1.VolumeMount) { m.MountPath = "" }), m0 + ".mountPath", requiredErr, ""},
		{"same path", mount(func(m *corev1.VolumeMount) { m.MountPath = "/etc/web" }), "spec.containers[0].volumeMounts[1].mountPath", invalidErr, "must be unique"},
		{"subPath out", mount(func(m *corev1.VolumeMount) { m.SubPath = "a/../.." }), m0 + ".subPath", invalidErr, "must not contain '..'"},
		{"subPath absolute", mount(func(m *corev1.VolumeMount) { m.SubPath = "/a" }), m0 + ".subPath", invalidErr, "must be a relative path"},
		{"subPathExpr out", mount(func(m *corev1.VolumeMount) { m.SubPathExpr = "../$(A)" }), m0 + ".subPathExpr", invalidErr, "must not contain '..'"},
		{"subPath twice", mount(func(m *corev1.VolumeMount) { m.SubPath, m.SubPathExpr = "a", "b" }), m0 + ".subPathExpr", invalidErr, "mutually exclusive"},
		{"propagation", mount(func(m *corev1.VolumeMount) { m.MountPropagation = new(corev1.MountPropagationMode("x")) }), "spec.containers[0].volumeMounts.mountPropagation", notSupportedErr, "HostToContainer"},
		{"propagation without privilege", mount(func(m *corev1.VolumeMount) { m.MountPropagation = new(corev1.MountPropagationBidirectional) }), "spec.containers[0].volumeMounts.mountPropagation", forbiddenErr, "only to privileged containers"},
		{"recursiveReadOnly", mount(func(m *corev1.VolumeMount) { m.RecursiveReadOnly = new(corev1.RecursiveReadOnlyMode("x")) }), "spec.containers[0].volumeMounts.recursiveReadOnly", notSupportedErr, "IfPossible"},
		{"recursiveReadOnly of a writable mount", mount(func(m *corev1.VolumeMount) { m.RecursiveReadOnly = new(corev1.RecursiveReadOnlyEnabled) }), "spec.containers[0].volumeMounts.recursiveReadOnly", forbiddenErr, "readOnly is true"},
		{"recursiveReadOnly and propagation", mount(func(m *corev1.VolumeMount) {
			m.ReadOnly, m.RecursiveReadOnly, m.MountPropagation = true, new(corev1.RecursiveReadOnlyEnabled), new(corev1.MountPropagationHostToContainer)
		}), "spec.containers[0].volumeMounts.recursiveReadOnly", forbiddenErr, "mountPropagation is None"},
		{"bind option", mount(func(m *corev1.VolumeMount) { m.BindMountOptions = []string{"sync"} }), m0 + ".bindMountOptions[0]", notSupportedErr, "noexec"},
		{"bind option twice", mount(func(m *corev1.VolumeMount) { m.BindMountOptions = []string{"nodev", "nodev"} }), m0 + ".bindMountOptions[1]", duplicateErr, ""},
		{"device no name", device(corev1.VolumeDevice{DevicePath: "/d"}), d0 + ".name", requiredErr, ""},
		{"device unknown", device(corev1.VolumeDevice{Name: "x", DevicePath: "/d"}), d0 + ".name", notFoundErr, ""},
		{"device of a folder", device(corev1.VolumeDevice{Name: "host", DevicePath: "/d"}), d0 + ".name", invalidErr, "block mode"},
		{"device no path", device(corev1.VolumeDevice{Name: "host"}), d0 + ".devicePath", requiredErr, ""},
		{"device where a mount is", device(corev1.VolumeDevice{Name: "host", DevicePath: "/tmp"}), d0 + ".devicePath", invalidErr, "must not already exist in volumeMounts"},
		{"devices alike", device(corev1.VolumeDevice{Name: "host", DevicePath: "/d"}, corev1.VolumeDevice{Name: "host", DevicePath: "/d"}), "spec.containers[0].volumeDevices[1].devicePath", invalidErr, "must be unique"},
	})
}

func TestValidateRemoteVolumes(t *testing.T) {
	const v0 = "spec.volumes[0]"
	type vs = corev1.VolumeSource
	claim := func(change func(*corev1.PersistentVolumeClaimTemplate)) func(*corev1.Pod) {
		c := &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": quantity("1Gi")}},
		}}
		change(c)
		return volumeOf(vs{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: c}})
	}
	checkSpoiled(t, []spoiled{
		{"claim", volumeOf(vs{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), v0 + ".persistentVolumeClaim.claimName", requiredErr, ""},
		{"ephemeral", volumeOf(vs{Ephemeral: &corev1.EphemeralVolumeSource{}}), v0 + ".ephemeral.volumeClaimTemplate", requiredErr, ""},
		{"ephemeral name", claim(func(c *corev1.PersistentVolumeClaimTemplate) { c.Name = "a" }), v0 + ".ephemeral.volumeClaimTemplate.metadata.name", forbiddenErr, ""},
		{"ephemeral modes", claim(func(c *corev1.PersistentVolumeClaimTemplate) { c.Spec.AccessModes = nil }), v0 + ".ephemeral.volumeClaimTemplate.spec.accessModes", requiredErr, "at least 1 access mode"},
		{"ephemeral mode", claim(func(c *corev1.PersistentVolumeClaimTemplate) { c.Spec.AccessModes[0] = "x" }), v0 + ".ephemeral.volumeClaimTemplate.spec.accessModes", notSupportedErr, "ReadWriteOnce"},
		{"ephemeral size", claim(func(c *corev1.PersistentVolumeClaimTemplate) { c.Spec.Resources.Requests = nil }), v0 + ".ephemeral.volumeClaimTemplate.spec.resources[storage]", requiredErr, ""},
		{"ephemeral source", claim(func(c *corev1.PersistentVolumeClaimTemplate) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "X", Name: "a"}
		}), v0 + ".ephemeral.volumeClaimTemplate.spec.dataSource", invalidErr, "PersistentVolumeClaim"},
		{"csi", volumeOf(vs{CSI: &corev1.CSIVolumeSource{}}), v0 + ".csi.driver", requiredErr, ""},
		{"csi driver", volumeOf(vs{CSI: &corev1.CSIVolumeSource{Driver: "a b"}}), v0 + ".csi.driver", invalidErr, ""},
		{"nfs server", volumeOf(vs{NFS: &corev1.NFSVolumeSource{Path: "/a"}}), v0 + ".nfs.server", requiredErr, ""},
		{"nfs path", volumeOf(vs{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "a"}}), v0 + ".nfs.path", invalidErr, "must be an absolute path"},
		{"iscsi portal", volumeOf(vs{ISCSI: &corev1.ISCSIVolumeSource{}}), v0 + ".iscsi.targetPortal", requiredErr, ""},
		{"iscsi iqn", volumeOf(vs{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "a", IQN: "b"}}), v0 + ".iscsi.iqn", invalidErr, "iqn, eui, or naa"},
		{"iscsi lun", volumeOf(vs{ISCSI: &corev1.ISCSIVolumeSource{Lun: 256}}), v0 + ".iscsi.lun", invalidErr, "0 and 255"},
		{"iscsi secret", volumeOf(vs{ISCSI: &corev1.ISCSIVolumeSource{SessionCHAPAuth: true}}), v0 + ".iscsi.secretRef", requiredErr, ""},
		{"fc", volumeOf(vs{FC: &corev1.FCVolumeSource{}}), v0 + ".fc.targetWWNs", requiredErr, "not both"},
		{"fc lun", volumeOf(vs{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"a"}}}), v0 + ".fc.lun", requiredErr, ""},
		{"gcePersistentDisk", volumeOf(vs{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}}), v0 + ".gcePersistentDisk.pdName", requiredErr, ""},
		{"gcePersistentDisk partition", volumeOf(vs{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{Partition: -1}}), v0 + ".gcePersistentDisk.partition", invalidErr, ""},
		{"awsElasticBlockStore", volumeOf(vs{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}), v0 + ".awsElasticBlockStore.volumeID", requiredErr, ""},
		{"gitRepo", volumeOf(vs{GitRepo: &corev1.GitRepoVolumeSource{}}), v0 + ".gitRepo.repository", requiredErr, ""},
		{"gitRepo directory", volumeOf(vs{GitRepo: &corev1.GitRepoVolumeSource{Repository: "a", Directory: ".."}}), v0 + ".gitRepo.directory", invalidErr, ""},
		{"glusterfs", volumeOf(vs{Glusterfs: &corev1.GlusterfsVolumeSource{}}), v0 + ".glusterfs.endpoints", requiredErr, ""},
		{"rbd", volumeOf(vs{RBD: &corev1.RBDVolumeSource{}}), v0 + ".rbd.monitors", requiredErr, ""},
		{"flexVolume", volumeOf(vs{FlexVolume: &corev1.FlexVolumeSource{}}), v0 + ".flexVolume.driver", requiredErr, ""},
		{"flexVolume option", volumeOf(vs{FlexVolume: &corev1.FlexVolumeSource{Driver: "a", Options: map[string]string{"kubernetes.io/x": ""}}}), v0 + ".flexVolume.options[kubernetes.io/x]", invalidErr, "reserved"},
		{"cinder", volumeOf(vs{Cinder: &corev1.CinderVolumeSource{}}), v0 + ".cinder.volumeID", requiredErr, ""},
		{"cephfs", volumeOf(vs{CephFS: &corev1.CephFSVolumeSource{}}), v0 + ".cephfs.monitors", requiredErr, ""},
		{"flocker", volumeOf(vs{Flocker: &corev1.FlockerVolumeSource{}}), v0 + ".flocker", requiredErr, ""},
		{"azureFile", volumeOf(vs{AzureFile: &corev1.AzureFileVolumeSource{}}), v0 + ".azureFile.secretName", requiredErr, ""},
		{"vsphereVolume", volumeOf(vs{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}}), v0 + ".vsphereVolume.volumePath", requiredErr, ""},
		{"quobyte", volumeOf(vs{Quobyte: &corev1.QuobyteVolumeSource{Volume: "a", Registry: "b"}}), v0 + ".quobyte.registry", invalidErr, "host:port"},
		{"azureDisk", volumeOf(vs{AzureDisk: &corev1.AzureDiskVolumeSource{}}), v0 + ".azureDisk.diskName", requiredErr, ""},
		{"photonPersistentDisk", volumeOf(vs{PhotonPersistentDisk: &corev1.PhotonPersistentDiskVolumeSource{}}), v0 + ".photonPersistentDisk.pdID", requiredErr, ""},
		{"portworxVolume", volumeOf(vs{PortworxVolume: &corev1.PortworxVolumeSource{}}), v0 + ".portworxVolume.volumeID", requiredErr, ""},
		{"scaleIO", volumeOf(vs{ScaleIO: &corev1.ScaleIOVolumeSource{}}), v0 + ".scaleIO.gateway", requiredErr, ""},
		{"storageos", volumeOf(vs{StorageOS: &corev1.StorageOSVolumeSource{}}), v0 + ".storageos.volumeName", requiredErr, ""},
	})
}
