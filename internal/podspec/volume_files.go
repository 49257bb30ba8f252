// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Volumes whose files are made from API objects: configMap, secret, downwardAPI, projected.

func configMapVolume(s *corev1.ConfigMapVolumeSource, at *field.Path) errs {
	all := required(at.Child("name"), s.Name)
	all = append(all, fileMode(at.Child("defaultMode"), s.DefaultMode)...)
	all = append(all, userID(at.Child("defaultUser"), s.DefaultUser)...)
	return append(all, keysToPaths(s.Items, at.Child("items"))...)
}

func secretVolume(s *corev1.SecretVolumeSource, at *field.Path) errs {
	all := required(at.Child("secretName"), s.SecretName)
	all = append(all, fileMode(at.Child("defaultMode"), s.DefaultMode)...)
	all = append(all, userID(at.Child("defaultUser"), s.DefaultUser)...)
	return append(all, keysToPaths(s.Items, at.Child("items"))...)
}

func keysToPaths(items []corev1.KeyToPath, at *field.Path) (all errs) {
	for i, item := range items {
		all = append(all, required(at.Index(i).Child("key"), item.Key)...)
		all = append(all, projectedFile(at.Index(i).Child("path"), item.Path)...)
		all = append(all, fileMode(at.Index(i).Child("mode"), item.Mode)...)
		all = append(all, userID(at.Index(i).Child("user"), item.User)...)
	}
	return all
}

func downwardVolume(s *corev1.DownwardAPIVolumeSource, at *field.Path) errs {
	all := fileMode(at.Child("defaultMode"), s.DefaultMode)
	all = append(all, userID(at.Child("defaultUser"), s.DefaultUser)...)
	return append(all, downwardFiles(s.Items, at.Child("items"))...)
}

func downwardFiles(items []corev1.DownwardAPIVolumeFile, at *field.Path) (all errs) {
	for i := range items {
		all = append(all, downwardFile(&items[i], at.Index(i))...)
	}
	return all
}

func downwardFile(f *corev1.DownwardAPIVolumeFile, at *field.Path) errs {
	all := projectedFile(at.Child("path"), f.Path)
	all = append(all, fileMode(at.Child("mode"), f.Mode)...)
	all = append(all, userID(at.Child("user"), f.User)...)
	switch {
	case f.FieldRef != nil:
		all = append(all, validateFieldRef(f.FieldRef, volumeFields(), at.Child("fieldRef"))...)
		if f.ResourceFieldRef != nil {
			all = append(all,
				field.Invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
		}
	case f.ResourceFieldRef != nil:
		all = append(all, validateResourceFieldRef(f.ResourceFieldRef, true, at.Child("resourceFieldRef"))...)
	default:
		all = append(all, field.Required(at, "one of fieldRef and resourceFieldRef is required"))
	}
	return all
}

func projectedVolume(s *corev1.ProjectedVolumeSource, at *field.Path) errs {
	all := fileMode(at.Child("defaultMode"), s.DefaultMode)
	all = append(all, userID(at.Child("defaultUser"), s.DefaultUser)...)
	taken := files{}
	for i := range s.Sources {
		all = append(all, projection(&s.Sources[i], taken, at.Child("sources").Index(i))...)
	}
	return all
}

// files are the paths that projections have taken so far: two cannot write the same file, nor one below the
// other.
type files map[string]bool

func (f files) take(at *field.Path, name string) (all errs) {
	if name == "" {
		return nil
	}
	clean := path.Clean(name)
	conflict := f[clean]
	for other := range f {
		conflict = conflict || strings.HasPrefix(other, clean+"/") || strings.HasPrefix(clean, other+"/")
	}
	f[clean] = true
	if conflict {
		all = append(all, field.Invalid(at, name, "conflicting duplicate paths"))
	}
	return all
}

func projection(p *corev1.VolumeProjection, taken files, at *field.Path) (all errs) {
	list := []source{
		{"secret", p.Secret != nil, func(at *field.Path) errs {
			return append(namedItems(p.Secret.Name, p.Secret.Items, at), taken.takeKeys(p.Secret.Items, at)...)
		}},
		{"configMap", p.ConfigMap != nil, func(at *field.Path) errs {
			return append(namedItems(p.ConfigMap.Name, p.ConfigMap.Items, at), taken.takeKeys(p.ConfigMap.Items, at)...)
		}},
		{"downwardAPI", p.DownwardAPI != nil, func(at *field.Path) errs {
			all := downwardFiles(p.DownwardAPI.Items, at.Child("items"))
			for i, item := range p.DownwardAPI.Items {
				all = append(all, taken.take(at.Child("items").Index(i).Child("path"), item.Path)...)
			}
			return all
		}},
		{"serviceAccountToken", p.ServiceAccountToken != nil, func(at *field.Path) errs {
			return append(tokenProjection(p.ServiceAccountToken, at),
				taken.take(at.Child("path"), p.ServiceAccountToken.Path)...)
		}},
		{"clusterTrustBundle", p.ClusterTrustBundle != nil, func(at *field.Path) errs {
			return append(trustBundle(p.ClusterTrustBundle, at),
				taken.take(at.Child("path"), p.ClusterTrustBundle.Path)...)
		}},
		{"podCertificate", p.PodCertificate != nil, func(at *field.Path) errs {
			return podCertificate(p.PodCertificate, taken, at)
		}},
	}
	n := 0
	for _, s := range list {
		if !s.set {
			continue
		}
		n++
		if n > 1 {
			all = append(all, field.Forbidden(at.Child(s.name), "may not specify more than 1 volume type"))
			continue
		}
		all = append(all, s.check(at.Child(s.name))...)
	}
	if n == 0 {
		all = append(all, field.Required(at, "must specify a volume type"))
	}
	return all
}

func namedItems(name string, items []corev1.KeyToPath, at *field.Path) errs {
	return append(required(at.Child("name"), name), keysToPaths(items, at.Child("items"))...)
}

func (f files) takeKeys(items []corev1.KeyToPath, at *field.Path) (all errs) {
	for i, item := range items {
		all = append(all, f.take(at.Child("items").Index(i).Child("path"), item.Path)...)
	}
	return all
}

func tokenProjection(t *corev1.ServiceAccountTokenProjection, at *field.Path) errs {
	all := projectedFile(at.Child("path"), t.Path)
	all = append(all, userID(at.Child("user"), t.User)...)
	if e := t.ExpirationSeconds; e != nil {
		switch {
		case *e < 10*60:
			all = append(all, field.Invalid(at.Child("expirationSeconds"), *e,
				"may not specify a duration less than 10 minutes"))
		case *e > 1<<32:
			all = append(all, field.Invalid(at.Child("expirationSeconds"), *e,
				"may not specify a duration larger than 2^32 seconds"))
		}
	}
	return all
}

func trustBundle(b *corev1.ClusterTrustBundleProjection, at *field.Path) errs {
	all := projectedFile(at.Child("path"), b.Path)
	all = append(all, userID(at.Child("user"), b.User)...)
	byName, bySigner := b.Name != nil && *b.Name != "", b.SignerName != nil && *b.SignerName != ""
	switch {
	case byName && bySigner:
		all = append(all, field.Invalid(at, "", "only one of name and signerName may be used"))
	case byName && b.LabelSelector != nil:
		all = append(all, field.Invalid(at.Child("labelSelector"), "",
			"labelSelector must be unset if name is specified"))
	case byName:
		all = append(all, objectName(at.Child("name"), strings.ReplaceAll(*b.Name, ":", "."))...)
	case bySigner:
		all = append(all, signerName(at.Child("signerName"), *b.SignerName)...)
		all = append(all, selector(b.LabelSelector, at.Child("labelSelector"))...)
	default:
		all = append(all, field.Required(at, "either name or signerName must be specified"))
	}
	return all
}

// Bounds of a pod certificate's life, in seconds; signers of Kubernetes' own have a bound of theirs.
const (
	shortestCertificate = 3600
	longestCertificate  = 91 * 24 * 3600
	longestOfKubernetes = 24 * 3600
)

func podCertificate(c *corev1.PodCertificateProjection, taken files, at *field.Path) errs {
	all := signerName(at.Child("signerName"), c.SignerName)
	all = append(all, userID(at.Child("user"), c.User)...)
	all = append(all, oneOf(at.Child("keyType"), c.KeyType, "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521",
		"ED25519")...)
	if e := c.MaxExpirationSeconds; e != nil {
		most := int32(longestCertificate)
		if domain, _, _ := strings.Cut(c.SignerName, "/"); domain == "kubernetes.io" ||
			strings.HasSuffix(domain, ".kubernetes.io") {
			most = longestOfKubernetes
		}
		switch {
		case *e < shortestCertificate:
			all = append(all, field.Invalid(at.Child("maxExpirationSeconds"), *e,
				fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", shortestCertificate)))
		case *e > most:
			all = append(all, field.Invalid(at.Child("maxExpirationSeconds"), *e,
				fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", most)))
		}
	}
	n := 0
	for _, f := range []struct{ name, value string }{
		{"credentialBundlePath", c.CredentialBundlePath}, {"keyPath", c.KeyPath},
		{"certificateChainPath", c.CertificateChainPath},
	} {
		if f.value == "" {
			continue
		}
		n++
		all = append(all, projectedFile(at.Child(f.name), f.value)...)
		all = append(all, taken.take(at.Child(f.name), f.value)...)
	}
	if n == 0 {
		all = append(all,
			field.Required(at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
	}
	notes := at.Child("userAnnotations")
	all = append(all, apivalidation.ValidateAnnotations(c.UserAnnotations, notes)...)
	for key := range c.UserAnnotations {
		if !strings.Contains(key, "/") {
			all = append(all, field.Invalid(notes.Key(key), key, "must be prefixed with a domain"))
		}
	}
	return all
}

// signerName: domain/path, as of certificate signing requests.
func signerName(at *field.Path, name string) errs {
	if name == "" {
		return errs{field.Required(at, "")}
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || rest == "" || strings.Contains(rest, "/") {
		return errs{field.Invalid(at, name,
			"must be a fully qualified domain and path of the form \"example.com/signer-name\"")}
	}
	all := valid(at, name, validation.IsDNS1123Subdomain(domain))
	if !strings.Contains(domain, ".") {
		all = append(all, field.Invalid(at, name, "should be a domain with at least two segments separated by dots"))
	}
	return append(all, valid(at, name, validation.IsDNS1123Subdomain(rest))...)
}
