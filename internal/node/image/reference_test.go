// SPDX-License-Identifier: Apache-2.0

package image

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/imagename"
)

// TestPolicyOf proves PL-03: the default policy goes by the tag.
func TestPolicyOf(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{"a": corev1.PullAlways, "a:latest": corev1.PullAlways, "a:v1": corev1.PullIfNotPresent} {
		ref, err := imagename.Parse(image)
		if err != nil {
			t.Fatal(err)
		}
		if got := PolicyOf("", ref); got != want {
			t.Errorf("PL-03 PolicyOf(%s) = %s", image, got)
		}
		if PolicyOf(corev1.PullNever, ref) != corev1.PullNever {
			t.Error("PL-03 a given policy stays")
		}
	}
}

// FuzzKeyring proves PL-03: whatever the image and the host of a docker config, no panic.
func FuzzKeyring(f *testing.F) {
	for _, s := range []string{"", "nginx", "a/b:c", "localhost:5000/a@sha256:00", "[::1]:5000/x", "A", "a..b", "docker.io/library/x", "http://x"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		ref, err := imagename.Parse(s)
		if err != nil {
			return
		}
		var ring Keyring
		_ = ring.AddDockerConfig([]byte(`{"auths":{` + quoted(s) + `:{"username":"u"}}}`))
		ring.For(ref)
	})
}

func quoted(s string) string {
	return `"` + strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, s) + `"`
}
