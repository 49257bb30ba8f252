// SPDX-License-Identifier: Apache-2.0

package image

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/imagename"
)

// FuzzSecret reads pull secrets, which may be anything: no login is tried twice.
func FuzzSecret(f *testing.F) {
	f.Add([]byte(`{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"},"*.example.com":{"username":"u","password":"p"},"[::1]:5000/a":{"identitytoken":"t"}}}`), true)
	f.Add([]byte(`{"h":{"auth":"!"},"g":null}`), false)
	f.Add([]byte(`{"auths":null}`), true)
	f.Add([]byte("null"), false)
	ref, err := imagename.Parse("a")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, modern bool) {
		s := &corev1.Secret{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: data}}
		if modern {
			s = &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: data}}
		}
		var ring Keyring
		_ = ring.AddSecret(s) // any error is fine: what can be read is kept
		seen := map[string]bool{}
		for _, auth := range ring.For(ref) {
			if seen[auth.String()] {
				t.Errorf("%q: %v is tried twice", data, auth)
			}
			seen[auth.String()] = true
		}
	})
}
