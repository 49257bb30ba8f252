// SPDX-License-Identifier: Apache-2.0

package api

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxDataBytes is what the data of a ConfigMap or Secret may weigh together.
const maxDataBytes = 1 << 20

// validateMeta checks name, labels, annotations and owners of a new object.
func validateMeta(obj metav1.Object, namespaced bool, name validation.ValidateNameFunc) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(obj, namespaced, name, field.NewPath("metadata"))
}

func configMapRules() rules {
	return typed[*corev1.ConfigMap]{
		validate: func(c *corev1.ConfigMap) field.ErrorList {
			return append(validateMeta(c, true, validation.NameIsDNSSubdomain), validateConfigMap(c)...)
		},
		validateUpdate: func(c, old *corev1.ConfigMap) field.ErrorList {
			errs := validateConfigMap(c)
			if old.Immutable == nil || !*old.Immutable {
				return errs
			}
			if c.Immutable == nil || !*c.Immutable {
				errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
			}
			if !equality.Semantic.DeepEqual(c.Data, old.Data) {
				errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
			}
			if !equality.Semantic.DeepEqual(c.BinaryData, old.BinaryData) {
				errs = append(errs, field.Forbidden(field.NewPath("binaryData"), "field is immutable when `immutable` is set"))
			}
			return errs
		},
	}.rules()
}

func validateConfigMap(c *corev1.ConfigMap) (errs field.ErrorList) {
	size := 0
	for k, v := range c.Data {
		errs = append(errs, validateDataKey(field.NewPath("data"), k)...)
		if _, twice := c.BinaryData[k]; twice {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(k), k, "duplicate of key present in binaryData"))
		}
		size += len(v)
	}
	for k, v := range c.BinaryData {
		errs = append(errs, validateDataKey(field.NewPath("binaryData"), k)...)
		size += len(v)
	}
	if size > maxDataBytes {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxDataBytes))
	}
	return errs
}

func secretRules() rules {
	return typed[*corev1.Secret]{
		prepareCreate: mergeStringData,
		validate: func(s *corev1.Secret) field.ErrorList {
			return append(validateMeta(s, true, validation.NameIsDNSSubdomain), validateSecret(s)...)
		},
		prepareUpdate: func(s, old *corev1.Secret) {
			mergeStringData(s)
			if s.Type == "" {
				s.Type = old.Type
			}
		},
		validateUpdate: func(s, old *corev1.Secret) field.ErrorList {
			errs := validateSecret(s)
			if s.Type != old.Type {
				errs = append(errs, field.Invalid(field.NewPath("type"), s.Type, validation.FieldImmutableErrorMsg))
			}
			if old.Immutable != nil && *old.Immutable {
				if s.Immutable == nil || !*s.Immutable {
					errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
				}
				if !equality.Semantic.DeepEqual(s.Data, old.Data) {
					errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
				}
			}
			return errs
		},
	}.rules()
}

// mergeStringData moves the write-only stringData into data.
func mergeStringData(s *corev1.Secret) {
	for k, v := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[k] = []byte(v)
	}
	s.StringData = nil
}

func secretFields(obj runtime.Object) fields.Set {
	return fields.Set{"type": string(obj.(*corev1.Secret).Type)}
}

func serviceAccountRules() rules {
	return typed[*corev1.ServiceAccount]{
		validate: func(s *corev1.ServiceAccount) field.ErrorList {
			return validateMeta(s, true, validation.ValidateServiceAccountName)
		},
	}.rules()
}

func endpointsRules() rules {
	return typed[*corev1.Endpoints]{
		validate: func(e *corev1.Endpoints) field.ErrorList {
			return validateMeta(e, true, validation.NameIsDNSSubdomain)
		},
		createOnUpdate: true,
	}.rules()
}

func limitRangeRules() rules {
	return typed[*corev1.LimitRange]{
		validate: func(l *corev1.LimitRange) field.ErrorList {
			return validateMeta(l, true, validation.NameIsDNSSubdomain)
		},
		createOnUpdate: true,
	}.rules()
}

func resourceQuotaRules() rules {
	return typed[*corev1.ResourceQuota]{
		prepareCreate: func(q *corev1.ResourceQuota) { q.Status = corev1.ResourceQuotaStatus{} },
		validate: func(q *corev1.ResourceQuota) field.ErrorList {
			return validateMeta(q, true, validation.NameIsDNSSubdomain)
		},
		prepareUpdate: func(q, old *corev1.ResourceQuota) { q.Status = old.Status },
		reset:         fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.rules()
}

func resourceQuotaStatusRules() rules {
	return typed[*corev1.ResourceQuota]{
		prepareUpdate: func(q, old *corev1.ResourceQuota) { q.Spec = old.Spec },
		reset:         fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.rules()
}

func endpointSliceRules() rules {
	return typed[*discoveryv1.EndpointSlice]{
		prepareCreate: func(s *discoveryv1.EndpointSlice) { s.Generation = 1 },
		validate: func(s *discoveryv1.EndpointSlice) field.ErrorList {
			return append(validateMeta(s, true, validation.NameIsDNSSubdomain), validateEndpointSlice(s)...)
		},
		prepareUpdate: func(s, old *discoveryv1.EndpointSlice) {
			a, b := s.DeepCopy(), old.DeepCopy()
			a.ObjectMeta, b.ObjectMeta = metav1.ObjectMeta{Labels: s.Labels}, metav1.ObjectMeta{Labels: old.Labels}
			if !equality.Semantic.DeepEqual(a, b) {
				s.Generation++
			}
		},
		validateUpdate: func(s, old *discoveryv1.EndpointSlice) field.ErrorList {
			errs := validateEndpointSlice(s)
			if s.AddressType != old.AddressType {
				errs = append(errs, field.Invalid(field.NewPath("addressType"), s.AddressType, validation.FieldImmutableErrorMsg))
			}
			return errs
		},
	}.rules()
}

func leaseRules() rules {
	return typed[*coordinationv1.Lease]{
		validate: func(l *coordinationv1.Lease) field.ErrorList {
			return append(validateMeta(l, true, validation.NameIsDNSSubdomain), validateLease(l)...)
		},
		validateUpdate: func(l, _ *coordinationv1.Lease) field.ErrorList { return validateLease(l) },
		createOnUpdate: true,
		mustHaveRV:     true,
	}.rules()
}
