// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzNames makes names of cgroups from roots and pods' UIDs: none leads out of the root, and the UID is found again.
func FuzzNames(f *testing.F) {
	f.Add("wherry-1a2b3c4d", "8d5c4b3a-0000-4000-8000-000000000000", true)
	f.Add("/a/../b", "..", false)
	f.Add("", "a_b", true)
	f.Fuzz(func(t *testing.T, root, uid string, systemd bool) {
		base, err := parseRoot(root)
		if err != nil || checkUID(types.UID(uid)) != nil {
			return
		}
		l := layout{root: base, systemd: systemd}
		for _, class := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
			at := l.path(l.pod(class, types.UID(uid)))
			if above := l.path(l.class(class)); path.Clean(at) != at || !strings.HasPrefix(at, strings.TrimSuffix(above, "/")+"/") {
				t.Errorf("root %q, pod %q: %q is not below %q", root, uid, at, above)
			}
			if systemd && strings.Contains(uid, "_") { // systemd's names have it for a hyphen
				continue
			}
			if got, ok := l.uid(l.class(class), path.Base(at)); !ok || string(got) != uid {
				t.Errorf("root %q, pod %q: found as %q, %v", root, uid, got, ok)
			}
		}
	})
}
