// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// SetDefaultsSecret makes an untyped Secret Opaque and moves stringData, which is for writing only, into data.
func SetDefaultsSecret(s *corev1.Secret) {
	rules.OrElse(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, text := range s.StringData {
		s.Data[key] = []byte(text)
	}
	s.StringData = nil
}

// ValidateSecret checks keys, total size, and what the known types must hold.
func ValidateSecret(s *corev1.Secret) field.ErrorList {
	all := rules.Meta(&s.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	data := field.NewPath("data")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		all = append(all, dataKey(data.Key(key), key)...)
		size += len(s.Data[key])
	}
	if size > maxData {
		all = append(all, field.TooLong(data, "", maxData))
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			all = append(all, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey),
				""))
		}
	case corev1.SecretTypeDockercfg:
		all = append(all, jsonKey(s.Data, corev1.DockerConfigKey)...)
	case corev1.SecretTypeDockerConfigJson:
		all = append(all, jsonKey(s.Data, corev1.DockerConfigJsonKey)...)
	case corev1.SecretTypeBasicAuth:
		_, user := s.Data[corev1.BasicAuthUsernameKey]
		_, password := s.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			all = append(all, field.Required(data.Key(corev1.BasicAuthUsernameKey), ""),
				field.Required(data.Key(corev1.BasicAuthPasswordKey), ""))
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			all = append(all, field.Required(data.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if _, ok := s.Data[key]; !ok {
				all = append(all, field.Required(data.Key(key), ""))
			}
		}
	case "":
		all = append(all, field.Required(field.NewPath("type"), ""))
	}
	return all
}

func jsonKey(data map[string][]byte, key string) rules.Errs {
	path := field.NewPath("data").Key(key)
	value, ok := data[key]
	if !ok {
		return rules.Errs{field.Required(path, "")}
	}
	if err := json.Unmarshal(value, new(map[string]any)); err != nil {
		return rules.Errs{field.Invalid(path, "<secret contents redacted>", err.Error())}
	}
	return nil
}

// ValidateSecretUpdate also keeps the type, and an immutable Secret as it is.
func ValidateSecretUpdate(now, was *corev1.Secret) field.ErrorList {
	all := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	all = append(all, rules.Immutable(field.NewPath("type"), now.Type, was.Type)...)
	if isTrue(was.Immutable) {
		all = append(all, stillImmutable(now.Immutable)...)
		if !equality.Semantic.DeepEqual(now.Data, was.Data) {
			all = append(all, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
		}
	}
	return append(all, ValidateSecret(now)...)
}
