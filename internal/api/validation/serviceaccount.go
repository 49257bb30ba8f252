// SPDX-License-Identifier: Apache-2.0

package validation

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// ValidateServiceAccount checks the name; the secrets it lists may be any.
func ValidateServiceAccount(s *corev1.ServiceAccount) field.ErrorList {
	return rules.Meta(&s.ObjectMeta, apivalidation.ValidateServiceAccountName)
}

// ValidateServiceAccountUpdate checks metadata.
func ValidateServiceAccountUpdate(now, was *corev1.ServiceAccount) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidateServiceAccount(now)...)
}
