// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type errs = field.ErrorList

// meta checks the metadata of an object in a namespace; namesake is the rule of its name.
func meta(m *metav1.ObjectMeta, namesake apivalidation.ValidateNameFunc) errs {
	path := field.NewPath("metadata")
	all := apivalidation.ValidateObjectMeta(m, true, namesake, path)
	return append(all, finalizers(m, path)...)
}

// clusterMeta is meta for an object in no namespace.
func clusterMeta(m *metav1.ObjectMeta, namesake apivalidation.ValidateNameFunc) errs {
	path := field.NewPath("metadata")
	all := apivalidation.ValidateObjectMeta(m, false, namesake, path)
	return append(all, finalizers(m, path)...)
}

func metaUpdate(now, was *metav1.ObjectMeta) errs {
	path := field.NewPath("metadata")
	return append(apivalidation.ValidateObjectMetaUpdate(now, was, path), finalizers(now, path)...)
}

// anyName lets in every name that can be part of a path. Kubelets call their requests for certificates node-csr- and a
// hash in base64, and events are called after their objects, of whatever kind.
func anyName(name string, prefix bool) []string { return path.ValidatePathSegmentName(name, prefix) }

// finalizers: a name without a domain must be one of Kubernetes' own.
func finalizers(m *metav1.ObjectMeta, path *field.Path) (all errs) {
	for i, name := range m.Finalizers {
		all = append(all, finalizerName(path.Child("finalizers").Index(i), name)...)
	}
	return all
}

func finalizerName(path *field.Path, name string) errs {
	switch name {
	case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		return nil
	}
	if !strings.Contains(name, "/") {
		return errs{field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")}
	}
	return nil
}

func oneOf[T ~string](path *field.Path, value T, known ...T) errs {
	switch {
	case value == "":
		return errs{field.Required(path, "")}
	case !slices.Contains(known, value):
		return errs{field.NotSupported(path, value, known)}
	}
	return nil
}

func oneOfIfSet[T ~string](path *field.Path, value *T, known ...T) errs {
	if value == nil {
		return nil
	}
	if !slices.Contains(known, *value) {
		return errs{field.NotSupported(path, *value, known)}
	}
	return nil
}

func valid(path *field.Path, value any, complaints []string) (all errs) {
	for _, words := range complaints {
		all = append(all, field.Invalid(path, value, words))
	}
	return all
}

func immutable(path *field.Path, now, was any) errs {
	return apivalidation.ValidateImmutableField(now, was, path)
}

func orElse[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

func orPointTo[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}
