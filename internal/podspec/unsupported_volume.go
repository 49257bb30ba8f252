// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumeGaps lists the kinds and options of volumes that are not honoured yet. Kinds are refused unless named
// here, so that a new kind in the API is refused by itself.
func volumeGaps(v *corev1.Volume, path *field.Path) (all errs) {
	known := []string{"emptyDir", "hostPath", "configMap", "secret", "projected", "downwardAPI"}
	for _, s := range volumeSources(v) {
		if s.set && !slices.Contains(known, s.name) {
			all = append(all, notYet(path.Child(s.name),
				"this node has volumes of the kinds "+strings.Join(known, ", ")+"; use one of these"))
		}
	}
	if e := v.EmptyDir; e != nil {
		at := path.Child("emptyDir")
		if strings.HasPrefix(string(e.Medium), string(corev1.StorageMediumHugePages)) {
			all = append(all, notYet(at.Child("medium"), "this node mounts no huge pages; use Memory or leave medium out"))
		}
		if e.Mode != nil {
			all = append(all, notYet(at.Child("mode"), "the folder's mode is always 0777; change it in an init container"))
		}
	}
	for _, user := range fileOwners(v) {
		if user.id != nil {
			all = append(all, notYet(user.at(path), "files are owned by root and the pod's fsGroup; leave it out"))
		}
	}
	if v.Projected == nil {
		return all
	}
	for i, s := range v.Projected.Sources {
		at := path.Child("projected", "sources").Index(i)
		if s.ClusterTrustBundle != nil {
			all = append(all, notYet(at.Child("clusterTrustBundle"), "there are no cluster trust bundles; put the certificates into a configMap"))
		}
		if s.PodCertificate != nil {
			all = append(all, notYet(at.Child("podCertificate"), "there are no pod certificates; put a key pair into a secret"))
		}
	}
	return all
}

// fileOwner is one of the fields by which a file's owner can be chosen (feature AtomicWriteVolumeUserFields).
type fileOwner struct {
	id *int64
	at func(volume *field.Path) *field.Path
}

func fileOwners(v *corev1.Volume) (list []fileOwner) {
	note := func(id *int64, at func(*field.Path) *field.Path) { list = append(list, fileOwner{id, at}) }
	keys := func(items []corev1.KeyToPath, below func(*field.Path) *field.Path) {
		for i, item := range items {
			note(item.User, func(p *field.Path) *field.Path { return below(p).Child("items").Index(i).Child("user") })
		}
	}
	files := func(items []corev1.DownwardAPIVolumeFile, below func(*field.Path) *field.Path) {
		for i, item := range items {
			note(item.User, func(p *field.Path) *field.Path { return below(p).Child("items").Index(i).Child("user") })
		}
	}
	in := func(names ...string) func(*field.Path) *field.Path {
		return func(p *field.Path) *field.Path { return p.Child(names[0], names[1:]...) }
	}
	if s := v.ConfigMap; s != nil {
		note(s.DefaultUser, in("configMap", "defaultUser"))
		keys(s.Items, in("configMap"))
	}
	if s := v.Secret; s != nil {
		note(s.DefaultUser, in("secret", "defaultUser"))
		keys(s.Items, in("secret"))
	}
	if s := v.DownwardAPI; s != nil {
		note(s.DefaultUser, in("downwardAPI", "defaultUser"))
		files(s.Items, in("downwardAPI"))
	}
	if v.Projected == nil {
		return list
	}
	note(v.Projected.DefaultUser, in("projected", "defaultUser"))
	for i, s := range v.Projected.Sources {
		below := func(name string) func(*field.Path) *field.Path {
			return func(p *field.Path) *field.Path { return p.Child("projected", "sources").Index(i).Child(name) }
		}
		if s.ConfigMap != nil {
			keys(s.ConfigMap.Items, below("configMap"))
		}
		if s.Secret != nil {
			keys(s.Secret.Items, below("secret"))
		}
		if s.DownwardAPI != nil {
			files(s.DownwardAPI.Items, below("downwardAPI"))
		}
		if t := s.ServiceAccountToken; t != nil {
			note(t.User, func(p *field.Path) *field.Path { return below("serviceAccountToken")(p).Child("user") })
		}
	}
	return list
}
