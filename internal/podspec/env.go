// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateEnv: the same name may come twice, the last one wins. Values may be anything.
func validateEnv(env []corev1.EnvVar, s *scope, c *corev1.Container, path *field.Path) (all errs) {
	for i, e := range env {
		at := path.Index(i)
		if e.Name == "" {
			all = append(all, field.Required(at.Child("name"), ""))
		} else {
			all = append(all, valid(at.Child("name"), e.Name, validation.IsRelaxedEnvVarName(e.Name))...)
		}
		if e.ValueFrom != nil {
			all = append(all, validateEnvSource(&e, s, c, at.Child("valueFrom"))...)
		}
	}
	return all
}

func validateEnvSource(e *corev1.EnvVar, s *scope, c *corev1.Container, path *field.Path) (all errs) {
	from := e.ValueFrom
	n := 0
	if from.FieldRef != nil {
		n++
		all = append(all, validateFieldRef(from.FieldRef, envFields(), path.Child("fieldRef"))...)
	}
	if from.ResourceFieldRef != nil {
		n++
		all = append(all, validateResourceFieldRef(from.ResourceFieldRef, false, path.Child("resourceFieldRef"))...)
	}
	if r := from.ConfigMapKeyRef; r != nil {
		n++
		all = append(all, validateKeyRef(r.Name, r.Key, path.Child("configMapKeyRef"))...)
	}
	if r := from.SecretKeyRef; r != nil {
		n++
		all = append(all, validateKeyRef(r.Name, r.Key, path.Child("secretKeyRef"))...)
	}
	if from.FileKeyRef != nil {
		n++
		all = append(all, validateFileKeyRef(from.FileKeyRef, s, path.Child("fileKeyRef"))...)
	}
	switch {
	case n == 0:
		all = append(all, field.Invalid(path, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case e.Value != "":
		all = append(all, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case n > 1:
		all = append(all, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return all
}

func validateKeyRef(name, key string, path *field.Path) errs {
	all := dnsSubdomain(path.Child("name"), name)
	if key == "" {
		return append(all, field.Required(path.Child("key"), ""))
	}
	return append(all, valid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

// validateFileKeyRef (KEP-3721): a key of a file in an emptyDir of the Pod.
func validateFileKeyRef(r *corev1.FileKeySelector, s *scope, path *field.Path) errs {
	all := required(path.Child("volumeName"), r.VolumeName)
	if v, ok := s.volumes[r.VolumeName]; r.VolumeName != "" && !ok {
		all = append(all, field.NotFound(path.Child("volumeName"), r.VolumeName))
	} else if ok && v.EmptyDir == nil {
		all = append(all, field.Invalid(path.Child("volumeName"), r.VolumeName,
			"must be the name of an emptyDir volume"))
	}
	all = append(all, projectedFile(path.Child("path"), r.Path)...)
	if r.Key == "" {
		return append(all, field.Required(path.Child("key"), ""))
	}
	if len(r.Key) > 128 {
		all = append(all, field.TooLong(path.Child("key"), r.Key, 128))
	}
	return append(all, valid(path.Child("key"), r.Key, validation.IsRelaxedEnvVarName(r.Key))...)
}

func validateEnvFrom(sources []corev1.EnvFromSource, path *field.Path) (all errs) {
	for i, from := range sources {
		at := path.Index(i)
		if from.Prefix != "" {
			all = append(all, valid(at.Child("prefix"), from.Prefix, validation.IsRelaxedEnvVarName(from.Prefix))...)
		}
		if from.ConfigMapRef != nil {
			all = append(all, dnsSubdomain(at.Child("configMapRef").Child("name"), from.ConfigMapRef.Name)...)
		}
		if from.SecretRef != nil {
			all = append(all, dnsSubdomain(at.Child("secretRef").Child("name"), from.SecretRef.Name)...)
		}
		switch {
		case from.ConfigMapRef == nil && from.SecretRef == nil:
			all = append(all, field.Invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
		case from.ConfigMapRef != nil && from.SecretRef != nil:
			all = append(all, field.Invalid(path, "", "may not have more than one field specified at a time"))
		}
	}
	return all
}

// envFields are the fields of a Pod an environment variable can be made from.
func envFields() sets.Set[string] {
	return sets.New("metadata.name", "metadata.namespace", "metadata.uid",
		"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
}

// volumeFields are those a file can be made from.
func volumeFields() sets.Set[string] {
	return sets.New("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations")
}

func validateFieldRef(ref *corev1.ObjectFieldSelector, known sets.Set[string], path *field.Path) errs {
	switch ref.APIVersion {
	case "":
		return errs{field.Required(path.Child("apiVersion"), "")}
	case "v1":
	default:
		return errs{field.Invalid(path.Child("apiVersion"), ref.APIVersion, "must be v1")}
	}
	at := path.Child("fieldPath")
	if ref.FieldPath == "" {
		return errs{field.Required(at, "")}
	}
	name, key, ok := SplitSubscript(ref.FieldPath)
	if !ok {
		if !known.Has(ref.FieldPath) {
			return errs{field.NotSupported(at, ref.FieldPath, sets.List(known))}
		}
		return nil
	}
	switch name {
	case "metadata.annotations":
		// Upper case is allowed in annotation keys, hence the lower.
		return valid(at, ref.FieldPath, validation.IsQualifiedName(strings.ToLower(key)))
	case "metadata.labels":
		return valid(at, ref.FieldPath, validation.IsQualifiedName(key))
	default:
		return errs{field.Invalid(at, ref.FieldPath, "field does not support subscript")}
	}
}

// SplitSubscript takes a field path such as metadata.labels['key'] apart. ok is false when there is no
// subscript.
func SplitSubscript(fieldPath string) (name, key string, ok bool) {
	rest, ok := strings.CutSuffix(fieldPath, "']")
	if !ok {
		return fieldPath, "", false
	}
	name, key, ok = strings.Cut(rest, "['")
	if !ok || name == "" {
		return fieldPath, "", false
	}
	return name, key, true
}

// validateResourceFieldRef: in a volume the container must be named, in an environment it is the own one
// unless named.
func validateResourceFieldRef(ref *corev1.ResourceFieldSelector, inVolume bool, path *field.Path) errs {
	if inVolume && ref.ContainerName == "" {
		return errs{field.Required(path.Child("containerName"), "")}
	}
	if ref.Resource == "" {
		return errs{field.Required(path.Child("resource"), "")}
	}
	units := divisors()
	_, name, _ := strings.Cut(ref.Resource, ".")
	known, ok := units[ref.Resource]
	if hugePages := isHugePages(corev1.ResourceName(name)); !ok && hugePages &&
		(strings.HasPrefix(ref.Resource, "limits.") || strings.HasPrefix(ref.Resource, "requests.")) {
		known, ok = units["limits.memory"], true
	}
	if !ok {
		names := append(slices.Sorted(maps.Keys(units)), "limits.hugepages-<pagesize>", "requests.hugepages-<pagesize>")
		return errs{field.NotSupported(path.Child("resource"), ref.Resource, names)}
	}
	if ref.Divisor.IsZero() || known.Has(ref.Divisor.String()) {
		return nil
	}
	return errs{field.Invalid(path.Child("divisor"), ref.Divisor.String(),
		"only divisor's values "+strings.Join(sets.List(known), ", ")+" are supported with "+ref.Resource)}
}

// divisors returns, for every resource that can be asked for, the units it can be expressed in.
func divisors() map[string]sets.Set[string] {
	cpu := sets.New("1m", "1")
	bytes := sets.New("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
	return map[string]sets.Set[string]{
		"limits.cpu": cpu, "requests.cpu": cpu,
		"limits.memory": bytes, "requests.memory": bytes,
		"limits.ephemeral-storage": bytes, "requests.ephemeral-storage": bytes,
	}
}

// objectName is a DNS subdomain where a name is given; used for references that may be empty.
func objectName(path *field.Path, name string) errs {
	if name == "" {
		return nil
	}
	return valid(path, name, apivalidation.NameIsDNSSubdomain(name, false))
}
