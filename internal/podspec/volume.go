// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// allVolumes: names are DNS labels and unique, each volume has exactly one source.
func (s *scope) allVolumes() (all errs) {
	names := seen{}
	for i := range s.spec.Volumes {
		v, at := &s.spec.Volumes[i], s.path.Child("volumes").Index(i)
		all = append(all, dnsLabel(at.Child("name"), v.Name)...)
		if v.Name != "" {
			all = append(all, names.unique(at.Child("name"), v.Name)...)
		}
		all = append(all, volumeSource(v, at)...)
	}
	return all
}

// source is one of the kinds of volume.
type source struct {
	name  string // JSON name
	set   bool
	check func(at *field.Path) errs
}

func volumeSource(v *corev1.Volume, path *field.Path) (all errs) {
	given := slices.DeleteFunc(volumeSources(v), func(s source) bool { return !s.set })
	slices.SortFunc(given, func(a, b source) int {
		return cmp.Compare(slices.Index(sourceOrder(), a.name), slices.Index(sourceOrder(), b.name))
	})
	for i, s := range given {
		if i > 0 {
			all = append(all, field.Forbidden(path.Child(s.name), "may not specify more than 1 volume type"))
			continue
		}
		all = append(all, s.check(path.Child(s.name))...)
	}
	if len(given) == 0 {
		all = append(all, field.Required(path, "must specify a volume type"))
	}
	return all
}

// volumeSources lists every kind of volume there is. Unsupported walks the same list.
func volumeSources(v *corev1.Volume) []source {
	local := []source{
		{"emptyDir", v.EmptyDir != nil, func(at *field.Path) errs { return emptyDir(v.EmptyDir, at) }},
		{"hostPath", v.HostPath != nil, func(at *field.Path) errs { return hostPath(v.HostPath, at) }},
		{"configMap", v.ConfigMap != nil, func(at *field.Path) errs { return configMapVolume(v.ConfigMap, at) }},
		{"secret", v.Secret != nil, func(at *field.Path) errs { return secretVolume(v.Secret, at) }},
		{"downwardAPI", v.DownwardAPI != nil, func(at *field.Path) errs { return downwardVolume(v.DownwardAPI, at) }},
		{"projected", v.Projected != nil, func(at *field.Path) errs { return projectedVolume(v.Projected, at) }},
		{"image", v.Image != nil, func(at *field.Path) errs { return imageVolume(v.Image, at) }},
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil, func(at *field.Path) errs {
			return required(at.Child("claimName"), v.PersistentVolumeClaim.ClaimName)
		}},
		{"ephemeral", v.Ephemeral != nil, func(at *field.Path) errs { return ephemeralVolume(v.Ephemeral, at) }},
		{"csi", v.CSI != nil, func(at *field.Path) errs { return csiVolume(v.CSI, at) }},
		{"nfs", v.NFS != nil, func(at *field.Path) errs { return nfs(v.NFS, at) }},
		{"iscsi", v.ISCSI != nil, func(at *field.Path) errs { return iscsi(v.ISCSI, at) }},
		{"fc", v.FC != nil, func(at *field.Path) errs { return fibreChannel(v.FC, at) }},
	}
	return append(local, formerSources(v)...)
}

// sourceOrder is the order in which Kubernetes looks for kinds of volume: of two in one volume it takes the first and
// refuses the other.
func sourceOrder() []string {
	return []string{"emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs",
		"iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI",
		"fc", "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
		"azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image"}
}

// emptyDir: what a medium is called is the node's to know, and volumeGaps says what this one does not.
func emptyDir(s *corev1.EmptyDirVolumeSource, path *field.Path) (all errs) {
	if s.SizeLimit != nil && s.SizeLimit.Sign() < 0 {
		all = append(all, field.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"))
	}
	if m := s.Mode; m != nil && (*m < 0 || *m > 0o1777) {
		all = append(all, field.Invalid(path.Child("mode"), *m,
			"must be a number between 0 and 01777 (octal), both inclusive"))
	}
	return all
}

func hostPath(s *corev1.HostPathVolumeSource, path *field.Path) errs {
	if s.Path == "" {
		return errs{field.Required(path.Child("path"), "")}
	}
	all := noBacksteps(path.Child("path"), s.Path)
	return append(all, oneOfIfSet(path.Child("type"), s.Type, corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate,
		corev1.HostPathDirectory, corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket,
		corev1.HostPathCharDev, corev1.HostPathBlockDev)...)
}

// imageVolume (KEP-4639): the reference may be left to a controller to fill in templates, but not in a Pod.
func imageVolume(s *corev1.ImageVolumeSource, path *field.Path) errs {
	all := required(path.Child("reference"), s.Reference)
	return append(all, oneOf(path.Child("pullPolicy"), s.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent,
		corev1.PullNever)...)
}

// mounts: volumeMounts and volumeDevices of one container.
func (s *scope) mounts(ref ContainerRef) (all errs) {
	c := ref.Container
	mounted := seen{}
	for i := range c.VolumeMounts {
		m, at := &c.VolumeMounts[i], ref.Path().Child("volumeMounts").Index(i)
		if m.Name == "" {
			all = append(all, field.Required(at.Child("name"), ""))
		} else if s.volumes[m.Name] == nil {
			all = append(all, field.NotFound(at.Child("name"), m.Name))
		}
		switch {
		case m.MountPath == "":
			all = append(all, field.Required(at.Child("mountPath"), ""))
		case mounted[m.MountPath]:
			all = append(all, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		mounted[m.MountPath] = true
		all = append(all, subPaths(m, at)...)
		all = append(all, s.propagation(m, ref)...)
		all = append(all, s.bindOptions(m, at.Child("bindMountOptions"))...)
	}
	return append(all, s.devices(ref, mounted)...)
}

func subPaths(m *corev1.VolumeMount, path *field.Path) errs {
	all := descending(path.Child("subPath"), m.SubPath)
	if m.SubPath != "" && m.SubPathExpr != "" {
		all = append(all, field.Invalid(path.Child("subPathExpr"), m.SubPathExpr,
			"subPathExpr and subPath are mutually exclusive"))
	}
	return append(all, descending(path.Child("subPathExpr"), m.SubPathExpr)...)
}

func (s *scope) propagation(m *corev1.VolumeMount, ref ContainerRef) errs {
	c := ref.Container
	// the mount is not part of the path: Kubernetes names the field of the list
	list := ref.Path().Child("volumeMounts")
	all := oneOfIfSet(list.Child("mountPropagation"), m.MountPropagation,
		corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	privileged := c.SecurityContext != nil && isTrue(c.SecurityContext.Privileged)
	if p := m.MountPropagation; p != nil && *p == corev1.MountPropagationBidirectional && !privileged {
		all = append(all, field.Forbidden(list.Child("mountPropagation"),
			"Bidirectional mount propagation is available only to privileged containers"))
	}
	if m.RecursiveReadOnly == nil {
		return all
	}
	at, mode := list.Child("recursiveReadOnly"), *m.RecursiveReadOnly
	all = append(all, oneOfIfSet(at, m.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled,
		corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled)...)
	if mode == corev1.RecursiveReadOnlyDisabled {
		return all
	}
	if !m.ReadOnly {
		all = append(all, field.Forbidden(at, "may only be specified when readOnly is true"))
	}
	if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
		all = append(all, field.Forbidden(at, "may only be specified when mountPropagation is None or not specified"))
	}
	return all
}

func (s *scope) bindOptions(m *corev1.VolumeMount, path *field.Path) (all errs) {
	if v := s.volumes[m.Name]; v != nil && v.Image != nil && len(m.BindMountOptions) > 0 {
		all = append(all, field.Forbidden(path, "not supported with image volumes"))
	}
	options := seen{}
	for i, o := range m.BindMountOptions {
		all = append(all, oneOf(path.Index(i), corev1.BindMountOption(o),
			corev1.BindMountOptionNoDev, corev1.BindMountOptionNoExec, corev1.BindMountOptionNoSUID)...)
		all = append(all, options.unique(path.Index(i), o)...)
	}
	return all
}

// devices: raw block devices come from claims only, and not where something is mounted.
func (s *scope) devices(ref ContainerRef, mounted seen) (all errs) {
	paths, names := seen{}, seen{}
	for i, d := range ref.Container.VolumeDevices {
		at := ref.Path().Child("volumeDevices").Index(i)
		v := s.volumes[d.Name]
		switch {
		case d.Name == "":
			all = append(all, field.Required(at.Child("name"), ""))
		case v == nil:
			all = append(all, field.NotFound(at.Child("name"), d.Name))
		case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
			all = append(all, field.Invalid(at.Child("name"), d.Name,
				"can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		if d.Name != "" && names[d.Name] {
			all = append(all, field.Invalid(at.Child("name"), d.Name, "must be unique"))
		}
		names[d.Name] = true
		switch {
		case d.DevicePath == "":
			all = append(all, field.Required(at.Child("devicePath"), ""))
		case paths[d.DevicePath]:
			all = append(all, field.Invalid(at.Child("devicePath"), d.DevicePath, "must be unique"))
		case mounted[d.DevicePath]:
			all = append(all, field.Invalid(at.Child("devicePath"), d.DevicePath,
				"must not already exist in volumeMounts"))
		default:
			all = append(all, noBacksteps(at.Child("devicePath"), d.DevicePath)...)
		}
		paths[d.DevicePath] = true
	}
	return all
}
