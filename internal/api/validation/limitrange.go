// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
	"github.com/wherryproject/wherry/internal/podspec"
)

// SetDefaultsLimitRange rounds amounts to what can be stored, and lets a container's default be the maximum, and its
// default request the default, else the minimum.
func SetDefaultsLimitRange(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		for _, list := range []corev1.ResourceList{item.Max, item.Min, item.Default, item.DefaultRequest,
			item.MaxLimitRequestRatio} {
			podspec.RoundAmounts(list)
		}
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		if item.Default == nil {
			item.Default = corev1.ResourceList{}
		}
		if item.DefaultRequest == nil {
			item.DefaultRequest = corev1.ResourceList{}
		}
		addMissing(item.Default, item.Max)
		addMissing(item.DefaultRequest, item.Default)
		addMissing(item.DefaultRequest, item.Min)
	}
}

func addMissing(list, from corev1.ResourceList) {
	for name, q := range from {
		if _, ok := list[name]; !ok {
			list[name] = q.DeepCopy()
		}
	}
}

// ValidateLimitRange checks that min <= default request <= default <= max for every resource.
func ValidateLimitRange(l *corev1.LimitRange) field.ErrorList {
	all := rules.Meta(&l.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	types := map[corev1.LimitType]bool{}
	for i := range l.Spec.Limits {
		item, at := &l.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		all = append(all, limitType(at.Child("type"), item.Type)...)
		if types[item.Type] {
			all = append(all, field.Duplicate(at.Child("type"), item.Type))
		}
		types[item.Type] = true
		all = append(all, limitItem(item, at)...)
	}
	return all
}

// limitType: qualified; without a domain it must be one that Kubernetes knows.
func limitType(path *field.Path, kind corev1.LimitType) rules.Errs {
	if all := rules.Valid(path, kind, validation.IsQualifiedName(string(kind))); len(all) > 0 ||
		strings.Contains(string(kind), "/") {
		return all
	}
	switch kind {
	case corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim:
		return nil
	}
	return rules.Errs{field.Invalid(path, kind, "must be a standard limit type or fully qualified")}
}

// ValidateLimitRangeUpdate is ValidateLimitRange for a changed one.
func ValidateLimitRangeUpdate(now, was *corev1.LimitRange) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidateLimitRange(now)...)
}

func limitItem(item *corev1.LimitRangeItem, path *field.Path) (all rules.Errs) {
	names := map[corev1.ResourceName]bool{}
	for _, list := range []struct {
		name string
		is   corev1.ResourceList
	}{{"max", item.Max}, {"min", item.Min}, {"default", item.Default}, {"defaultRequest", item.DefaultRequest},
		{"maxLimitRequestRatio", item.MaxLimitRequestRatio}} {
		if list.name == "maxLimitRequestRatio" { // no amounts of the resource
			for _, name := range slices.Sorted(maps.Keys(list.is)) {
				all = append(all, limitResourceName(item.Type)(path.Child(list.name).Key(string(name)), name)...)
			}
		} else {
			all = append(all, podspec.ValidateAmounts(list.is, limitResourceName(item.Type), path.Child(list.name))...)
		}
		for name := range list.is {
			names[name] = true
		}
		if item.Type == corev1.LimitTypePod && len(list.is) > 0 &&
			(list.name == "default" || list.name == "defaultRequest") {
			all = append(all, field.Forbidden(path.Child(list.name), "may not be specified when `type` is 'Pod'"))
		}
	}
	if item.Type == corev1.LimitTypePersistentVolumeClaim {
		_, low := item.Min[corev1.ResourceStorage]
		_, high := item.Max[corev1.ResourceStorage]
		if !low && !high {
			all = append(all, field.Required(path.Child("limits"),
				"either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, ordered(item, name, path)...)
	}
	return all
}

// ordered compares the bounds of one resource, lower with higher.
func ordered(item *corev1.LimitRangeItem, name corev1.ResourceName, path *field.Path) (all rules.Errs) {
	bounds := []struct {
		field, words string
		list         corev1.ResourceList
	}{{"min", "min", item.Min}, {"defaultRequest", "default request", item.DefaultRequest},
		{"default", "default", item.Default}, {"max", "max", item.Max}}
	for i, low := range bounds {
		a, ok := low.list[name]
		if !ok {
			continue
		}
		for _, high := range bounds[i+1:] {
			if b, ok := high.list[name]; ok && a.Cmp(b) > 0 {
				at := low // who is to blame: the default, where it is one
				if low.field == "min" && high.field != "max" {
					at = high
				}
				all = append(all, field.Invalid(path.Child(at.field).Key(string(name)), a.String(),
					fmt.Sprintf("%s value %s is greater than %s value %s", low.words, a.String(), high.words,
						b.String())))
			}
		}
	}
	ratio, ok := item.MaxLimitRequestRatio[name]
	if !ok {
		return all
	}
	at := path.Child("maxLimitRequestRatio").Key(string(name))
	if ratio.Cmp(resource.MustParse("1")) < 0 {
		all = append(all, field.Invalid(at, ratio.String(), fmt.Sprintf("ratio %s is less than 1", ratio.String())))
	}
	low, high := item.Min[name], item.Max[name]
	if !low.IsZero() && !high.IsZero() {
		most := high.AsApproximateFloat64() / low.AsApproximateFloat64()
		if ratio.AsApproximateFloat64() > most {
			all = append(all, field.Invalid(at, ratio.String(),
				fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), most)))
		}
	}
	return all
}

func limitResourceName(kind corev1.LimitType) func(*field.Path, corev1.ResourceName) field.ErrorList {
	switch kind {
	case corev1.LimitTypePod, corev1.LimitTypeContainer:
		return podspec.ContainerResourceName
	}
	return func(path *field.Path, name corev1.ResourceName) field.ErrorList {
		all := rules.Valid(path, string(name), validation.IsQualifiedName(string(name)))
		if len(all) == 0 && !strings.Contains(string(name), "/") && !isStandardResource(string(name)) {
			all = rules.Errs{field.Invalid(path, string(name), "must be a standard resource type or fully qualified")}
		}
		return all
	}
}

// isStandardResource: what Kubernetes limits or counts under a name without a domain.
func isStandardResource(name string) bool {
	return isStandard(name) || name == "storage" || strings.HasPrefix(strings.TrimPrefix(name, "requests."),
		corev1.ResourceHugePagesPrefix)
}
