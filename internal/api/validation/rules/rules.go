// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Errs is short for what every rule returns.
type Errs = field.ErrorList

// Meta checks the metadata of an object in a namespace; namesake is the rule of its name.
func Meta(m *metav1.ObjectMeta, namesake apivalidation.ValidateNameFunc) Errs {
	path := field.NewPath("metadata")
	all := apivalidation.ValidateObjectMeta(m, true, namesake, path)
	return append(all, finalizers(m, path)...)
}

// ClusterMeta is meta for an object in no namespace.
func ClusterMeta(m *metav1.ObjectMeta, namesake apivalidation.ValidateNameFunc) Errs {
	path := field.NewPath("metadata")
	all := apivalidation.ValidateObjectMeta(m, false, namesake, path)
	return append(all, finalizers(m, path)...)
}

// MetaUpdate checks what has changed of the metadata.
func MetaUpdate(now, was *metav1.ObjectMeta) Errs {
	path := field.NewPath("metadata")
	return append(apivalidation.ValidateObjectMetaUpdate(now, was, path), finalizers(now, path)...)
}

// AnyName lets in every name that can be part of a path. Kubelets call their requests for certificates node-csr- and a
// hash in base64, and events are called after their objects, of whatever kind.
func AnyName(name string, prefix bool) []string { return path.ValidatePathSegmentName(name, prefix) }

// finalizers: a name without a domain must be one of Kubernetes' own.
func finalizers(m *metav1.ObjectMeta, path *field.Path) (all Errs) {
	for i, name := range m.Finalizers {
		all = append(all, FinalizerName(path.Child("finalizers").Index(i), name)...)
	}
	return all
}

// FinalizerName checks one finalizer.
func FinalizerName(path *field.Path, name string) Errs {
	switch name {
	case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		return nil
	}
	if !strings.Contains(name, "/") {
		return Errs{field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")}
	}
	return nil
}

// OneOf checks a value of which a few are known.
func OneOf[T ~string](path *field.Path, value T, known ...T) Errs {
	switch {
	case value == "":
		return Errs{field.Required(path, "")}
	case !slices.Contains(known, value):
		return Errs{field.NotSupported(path, value, known)}
	}
	return nil
}

// OneOfIfSet lets an empty value pass.
func OneOfIfSet[T ~string](path *field.Path, value *T, known ...T) Errs {
	if value == nil {
		return nil
	}
	if !slices.Contains(known, *value) {
		return Errs{field.NotSupported(path, *value, known)}
	}
	return nil
}

// Valid passes what a check of a text says on as errors.
func Valid(path *field.Path, value any, complaints []string) (all Errs) {
	for _, words := range complaints {
		all = append(all, field.Invalid(path, value, words))
	}
	return all
}

// Immutable refuses a change.
func Immutable(path *field.Path, now, was any) Errs {
	return apivalidation.ValidateImmutableField(now, was, path)
}

// OrElse sets a value that is empty.
func OrElse[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// OrPointTo sets a pointer that is nil.
func OrPointTo[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}
