// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// maxData is what the values of a ConfigMap or Secret may take together: 1 MiB.
const maxData = corev1.MaxSecretSize

// SetDefaultsConfigMap makes an empty data map of none, as Kubernetes does.
func SetDefaultsConfigMap(c *corev1.ConfigMap) {
	if c.Data == nil {
		c.Data = map[string]string{}
	}
}

// ValidateConfigMap checks keys and total size.
func ValidateConfigMap(c *corev1.ConfigMap) field.ErrorList {
	all := rules.Meta(&c.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		all = append(all, dataKey(field.NewPath("data").Key(key), key)...)
		if _, twice := c.BinaryData[key]; twice {
			all = append(all, field.Invalid(field.NewPath("data").Key(key), key,
				"duplicate of key present in binaryData"))
		}
		size += len(c.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		all = append(all, dataKey(field.NewPath("binaryData").Key(key), key)...)
		size += len(c.BinaryData[key])
	}
	if size > maxData {
		// An empty path, since it is about two fields.
		all = append(all, field.TooLong(field.NewPath(""), "", maxData))
	}
	return all
}

func dataKey(path *field.Path, key string) rules.Errs {
	return rules.Valid(path, key, validation.IsConfigMapKey(key))
}

// ValidateConfigMapUpdate also keeps an immutable ConfigMap as it is.
func ValidateConfigMapUpdate(now, was *corev1.ConfigMap) field.ErrorList {
	all := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	if isTrue(was.Immutable) {
		all = append(all, stillImmutable(now.Immutable)...)
		if !equality.Semantic.DeepEqual(now.Data, was.Data) {
			all = append(all, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
		}
		if !equality.Semantic.DeepEqual(now.BinaryData, was.BinaryData) {
			all = append(all, field.Forbidden(field.NewPath("binaryData"),
				"field is immutable when `immutable` is set"))
		}
	}
	return append(all, ValidateConfigMap(now)...)
}

func stillImmutable(now *bool) rules.Errs {
	if isTrue(now) {
		return nil
	}
	return rules.Errs{field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set")}
}

func isTrue(b *bool) bool { return b != nil && *b }
