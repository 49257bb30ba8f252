// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Volumes that live in storage systems. Only what Kubernetes requires of them is checked: their options are
// the business of their drivers.

func nfs(s *corev1.NFSVolumeSource, at *field.Path) errs {
	all := required(at.Child("server"), s.Server)
	all = append(all, required(at.Child("path"), s.Path)...)
	if s.Path != "" && !strings.HasPrefix(s.Path, "/") {
		all = append(all, field.Invalid(at.Child("path"), s.Path, "must be an absolute path"))
	}
	return all
}

const maxLUN = 255

func iscsi(s *corev1.ISCSIVolumeSource, at *field.Path) errs {
	all := required(at.Child("targetPortal"), s.TargetPortal)
	all = append(all, iscsiName(at.Child("iqn"), s.IQN)...)
	all = append(all, inRange(at.Child("lun"), s.Lun, 0, maxLUN)...)
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		all = append(all, field.Required(at.Child("secretRef"), ""))
	}
	if s.SecretRef != nil {
		all = append(all, required(at.Child("secretRef").Child("name"), s.SecretRef.Name)...)
	}
	if s.InitiatorName != nil {
		all = append(all, iscsiName(at.Child("initiatorname"), *s.InitiatorName)...)
	}
	return all
}

func iscsiName(at *field.Path, name string) errs {
	if name == "" {
		return errs{field.Required(at, "")}
	}
	for _, prefix := range []string{"iqn.", "eui.", "naa."} {
		if strings.HasPrefix(name, prefix) && !strings.ContainsAny(name, " \t\n") {
			return nil
		}
	}
	return errs{field.Invalid(at, name, "must be valid format starting with iqn, eui, or naa")}
}

func fibreChannel(s *corev1.FCVolumeSource, at *field.Path) (all errs) {
	if (len(s.TargetWWNs) == 0) == (len(s.WWIDs) == 0) {
		all = append(all, field.Required(at.Child("targetWWNs"),
			"must specify either targetWWNs or wwids, but not both"))
	}
	if len(s.TargetWWNs) == 0 {
		return all
	}
	if s.Lun == nil {
		return append(all, field.Required(at.Child("lun"), "lun is required if targetWWNs is specified"))
	}
	return append(all, inRange(at.Child("lun"), *s.Lun, 0, maxLUN)...)
}

func csiVolume(s *corev1.CSIVolumeSource, at *field.Path) errs {
	if s.Driver == "" {
		return errs{field.Required(at.Child("driver"), "")}
	}
	var all errs
	if len(s.Driver) > 63 {
		all = append(all, field.TooLong(at.Child("driver"), s.Driver, 63))
	}
	all = append(all, valid(at.Child("driver"), s.Driver, validation.IsDNS1123Subdomain(strings.ToLower(s.Driver)))...)
	if s.NodePublishSecretRef != nil {
		all = append(all, required(at.Child("nodePublishSecretRef").Child("name"), s.NodePublishSecretRef.Name)...)
	}
	return all
}

// ephemeralVolume: a claim made for the Pod.
func ephemeralVolume(s *corev1.EphemeralVolumeSource, at *field.Path) errs {
	t := s.VolumeClaimTemplate
	if t == nil {
		return errs{field.Required(at.Child("volumeClaimTemplate"), "")}
	}
	at = at.Child("volumeClaimTemplate")
	all := apivalidation.ValidateAnnotations(t.Annotations, at.Child("metadata", "annotations"))
	all = append(all, validLabels(t.Labels, at.Child("metadata", "labels"))...)
	for _, m := range []struct {
		name string
		set  bool
	}{{"name", t.Name != ""}, {"namespace", t.Namespace != ""}, {"generateName", t.GenerateName != ""}} {
		if m.set {
			all = append(all, field.Forbidden(at.Child("metadata", m.name), "only labels and annotations may be set"))
		}
	}
	return append(all, claimSpec(&t.Spec, at.Child("spec"))...)
}

func claimSpec(c *corev1.PersistentVolumeClaimSpec, at *field.Path) (all errs) {
	modes := []corev1.PersistentVolumeAccessMode{
		corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod,
	}
	if len(c.AccessModes) == 0 {
		all = append(all, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	for _, mode := range c.AccessModes {
		if !slices.Contains(modes, mode) {
			all = append(all, field.NotSupported(at.Child("accessModes"), mode, modes))
		}
	}
	if len(c.AccessModes) > 1 && slices.Contains(c.AccessModes, corev1.ReadWriteOncePod) {
		all = append(all, field.Forbidden(at.Child("accessModes"),
			"may not use ReadWriteOncePod with other access modes"))
	}
	all = append(all, selector(c.Selector, at.Child("selector"))...)
	size, ok := c.Resources.Requests[corev1.ResourceStorage]
	switch {
	case !ok:
		all = append(all, field.Required(at.Child("resources").Key("storage"), ""))
	case size.Sign() <= 0:
		all = append(all, field.Invalid(at.Child("resources").Key("storage"), size.String(),
			"must be greater than zero"))
	}
	if limit, limited := c.Resources.Limits[corev1.ResourceStorage]; limited && limit.Cmp(size) < 0 {
		all = append(all, field.Invalid(at.Child("resources", "limits").Key("storage"), limit.String(),
			fmt.Sprintf("must be greater than or equal to storage request of %s", size.String())))
	}
	all = append(all, oneOfIfSet(at.Child("volumeMode"), c.VolumeMode, corev1.PersistentVolumeBlock,
		corev1.PersistentVolumeFilesystem)...)
	if c.StorageClassName != nil {
		all = append(all, objectName(at.Child("storageClassName"), *c.StorageClassName)...)
	}
	if c.VolumeAttributesClassName != nil {
		all = append(all, objectName(at.Child("volumeAttributesClassName"), *c.VolumeAttributesClassName)...)
	}
	if d := c.DataSource; d != nil {
		all = append(all, dataSource(d.APIGroup, d.Kind, d.Name, at.Child("dataSource"))...)
	}
	if d := c.DataSourceRef; d != nil {
		all = append(all, dataSource(d.APIGroup, d.Kind, d.Name, at.Child("dataSourceRef"))...)
		if d.Namespace != nil && *d.Namespace != "" {
			all = append(all, dnsLabel(at.Child("dataSourceRef", "namespace"), *d.Namespace)...)
		}
	}
	return append(all, objectName(at.Child("volumeName"), c.VolumeName)...)
}

func dataSource(group *string, kind, name string, at *field.Path) errs {
	all := required(at.Child("name"), name)
	all = append(all, required(at.Child("kind"), kind)...)
	if (group == nil || *group == "") && kind != "PersistentVolumeClaim" {
		all = append(all,
			field.Invalid(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
	}
	return all
}
