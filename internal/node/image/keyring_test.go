// SPDX-License-Identifier: Apache-2.0

package image

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/imagename"
)

// TestKeyring proves PL-03: which credentials fit which image, the most specific first.
func TestKeyring(t *testing.T) {
	var ring Keyring
	auth := base64.StdEncoding.EncodeToString([]byte("encoded:pa:ss"))
	err := ring.AddDockerConfig([]byte(`{"auths":{
		"https://index.docker.io/v1/": {"username":"hub"},
		"r.example": {"username":"host"},
		"r.example/team": {"username":"team"},
		"r.example/team/app": {"auth":"` + auth + `"},
		"*.wild.example": {"username":"wild"},
		"*.wild.example:5000": {"username":"port"},
		"https://r2.example/v2/x": {"identitytoken":"idt"},
		"r3.example": {"username":"twice"},
		"r3.example/x": {"username":"twice"},
		"[::1]:5000": {"username":"v6"}
	}}`))
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string][]string{
		"nginx":                        {"hub:"},
		"docker.io/team/app":           {"hub:"},
		"r.example/other":              {"host:"},
		"r.example/team/app:v1":        {"encoded:pa:ss", "team:", "host:"},
		"r.example:5000/team":          nil,
		"a.wild.example/x":             {"wild:"},
		"a.b.wild.example/x":           nil,
		"a.wild.example:5000/x":        {"port:"},
		"wild.example/x":               nil,
		"r2.example/x":                 {":"},
		"r2.example/y":                 nil,
		"r3.example/x":                 {"twice:"},
		"unknown.example/x":            nil,
		"evil-r.example/x":             nil,
		"r.example.evil.com/team/appx": nil,
	} {
		ref, err := imagename.Parse(image)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range ring.For(ref) {
			got = append(got, a.Username+":"+a.Password)
		}
		if !slices.Equal(got, want) {
			t.Errorf("PL-03 %s: got %q, want %q", image, got, want)
		}
	}
}

// TestAddSecret proves PL-03: both kinds of secret, and PL-15: words for those that cannot be used.
func TestAddSecret(t *testing.T) {
	secret := func(kind corev1.SecretType, key, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull"}, Type: kind, Data: map[string][]byte{key: []byte(value)}}
	}
	for name, c := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"dockerconfigjson": {secret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"r.example":{"username":"u"}}}`), ""},
		"dockercfg":        {secret(corev1.SecretTypeDockercfg, ".dockercfg", `{"r.example":{"username":"u"}}`), ""},
		"no padding":       {secret(corev1.SecretTypeDockercfg, ".dockercfg", `{"r.example":{"auth":"dTpwdw"}}`), ""},
		"wrong key":        {secret(corev1.SecretTypeDockercfg, "x", `{}`), "secret ns/pull has no key .dockercfg"},
		"other type":       {secret(corev1.SecretTypeOpaque, "x", `{}`), "kubectl create secret docker-registry"},
		"not json":         {secret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `nope`), "secret ns/pull: not a docker config"},
		"bad auth":         {secret(corev1.SecretTypeDockercfg, ".dockercfg", `{"r.example":{"auth":"!"}}`), `secret ns/pull: entry "r.example": auth is not base64`},
		"no colon":         {secret(corev1.SecretTypeDockercfg, ".dockercfg", `{"r.example":{"auth":"dXU="}}`), "user:password"},
	} {
		t.Run("PL-03 "+name, func(t *testing.T) {
			var ring Keyring
			err := ring.AddSecret(c.secret)
			ref, _ := imagename.Parse("r.example/x")
			if c.want == "" {
				if err != nil || len(ring.For(ref)) != 1 {
					t.Error(err, ring.For(ref))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || len(ring.For(ref)) != 0 {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
