// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumeGaps lists the kinds and options of volumes that are not honoured yet. Kinds are refused unless named
// here, so that a new kind in the API is refused by itself.
func volumeGaps(v *corev1.Volume, path *field.Path) (all errs) {
	known := []string{"emptyDir", "hostPath", "configMap", "secret", "projected", "downwardAPI", "image",
		"persistentVolumeClaim", "ephemeral", "nfs", "csi"}
	for _, s := range volumeSources(v) {
		if s.set && !slices.Contains(known, s.name) {
			all = append(all, notYet(path.Child(s.name),
				"this node has volumes of the kinds "+strings.Join(known, ", ")+"; use one of these"))
		}
	}
	if e := v.EmptyDir; e != nil {
		at := path.Child("emptyDir")
		switch {
		case e.Medium == corev1.StorageMediumDefault, e.Medium == corev1.StorageMediumMemory:
		case e.Medium == corev1.StorageMediumHugePages,
			strings.HasPrefix(string(e.Medium), string(corev1.StorageMediumHugePagesPrefix)):
		default:
			all = append(all,
				notYet(at.Child("medium"), fmt.Sprintf("this node has no medium %q; use Memory or leave medium out",
					e.Medium)))
		}
		if e.Mode != nil {
			all = append(all,
				notYet(at.Child("mode"), "the folder's mode is always 0777; change it in an init container"))
		}
	}
	for _, owner := range fileOwners(v, path) {
		if owner.id != nil {
			all = append(all, notYet(owner.path, "files are owned by root and the pod's fsGroup; leave it out"))
		}
	}
	return all
}

// fileOwner is one of the fields by which a file's owner can be chosen (feature AtomicWriteVolumeUserFields).
type fileOwner struct {
	path *field.Path
	id   *int64
}

func fileOwners(v *corev1.Volume, path *field.Path) (list []fileOwner) {
	note := func(at *field.Path, id *int64) { list = append(list, fileOwner{at, id}) }
	keys := func(at *field.Path, items []corev1.KeyToPath) {
		for i, item := range items {
			note(at.Child("items").Index(i).Child("user"), item.User)
		}
	}
	fields := func(at *field.Path, items []corev1.DownwardAPIVolumeFile) {
		for i, item := range items {
			note(at.Child("items").Index(i).Child("user"), item.User)
		}
	}
	if s, at := v.ConfigMap, path.Child("configMap"); s != nil {
		note(at.Child("defaultUser"), s.DefaultUser)
		keys(at, s.Items)
	}
	if s, at := v.Secret, path.Child("secret"); s != nil {
		note(at.Child("defaultUser"), s.DefaultUser)
		keys(at, s.Items)
	}
	if s, at := v.DownwardAPI, path.Child("downwardAPI"); s != nil {
		note(at.Child("defaultUser"), s.DefaultUser)
		fields(at, s.Items)
	}
	if v.Projected == nil {
		return list
	}
	path = path.Child("projected")
	note(path.Child("defaultUser"), v.Projected.DefaultUser)
	for i, s := range v.Projected.Sources {
		at := path.Child("sources").Index(i)
		if s.ConfigMap != nil {
			keys(at.Child("configMap"), s.ConfigMap.Items)
		}
		if s.Secret != nil {
			keys(at.Child("secret"), s.Secret.Items)
		}
		if s.DownwardAPI != nil {
			fields(at.Child("downwardAPI"), s.DownwardAPI.Items)
		}
		if t := s.ServiceAccountToken; t != nil {
			note(at.Child("serviceAccountToken", "user"), t.User)
		}
		if b := s.ClusterTrustBundle; b != nil {
			note(at.Child("clusterTrustBundle", "user"), b.User)
		}
		if c := s.PodCertificate; c != nil {
			note(at.Child("podCertificate", "user"), c.User)
		}
	}
	return list
}
