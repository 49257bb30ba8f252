// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestCertificates proves PL-05: projected clusterTrustBundle and podCertificate sources: each file, key and chain of
// one certificate together, whose they are, and that only the first is waited for; without one the old stays.
func TestCertificates(t *testing.T) {
	needsRoot(t)
	m, s := manager(t)
	pod := podWith(corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o440), Sources: []corev1.VolumeProjection{
			{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: ptr.To("ca"), Path: "trust/ca.crt"}},
			{PodCertificate: &corev1.PodCertificateProjection{CredentialBundlePath: "both.pem", KeyPath: "tls.key", CertificateChainPath: "tls.crt"}},
		}}}})
	dir := filepath.Join(m.cfg.Root, "uid-1/volumes/kubernetes.io~projected/tls")
	prepare(t, m, pod)
	wantFiles(t, dir, "both.pem 0440 key of web/tls/1;chain t1", "tls.crt 0440 chain t1", "tls.key 0440 key of web/tls/1;", "trust/ca.crt 0440 bundle ca")
	s.token = "t2"
	if changed, err := m.Refresh(t.Context(), pod); err != nil || !changed {
		t.Error(changed, err)
	}
	s.err = errors.New("denied")
	if _, err := m.Refresh(t.Context(), pod); len(Failures(err)) != 1 {
		t.Error(err)
	}
	s.err = nil
	wantFiles(t, dir, "both.pem 0440 key of web/tls/1;chain t2", "tls.crt 0440 chain t2", "tls.key 0440 key of web/tls/1;", "trust/ca.crt 0440 bundle ca")
	if !slices.Equal(s.waited, []bool{true, false, false}) {
		t.Error("waited:", s.waited)
	}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](7)}
	prepare(t, m, pod)
	wantFiles(t, dir, "both.pem 0600 key of web/tls/1;chain t2", "tls.crt 0600 chain t2", "tls.key 0600 key of web/tls/1;", "trust/ca.crt 0600 bundle ca")
}
