// SPDX-License-Identifier: Apache-2.0

package refs

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

func certs(bodies ...string) (out string) {
	for _, b := range bodies {
		out += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(b)}))
	}
	return out
}

func bundle(name, signer, label string, bodies ...string) *certificatesv1.ClusterTrustBundle {
	return &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"v": label}},
		Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: "# words\n" + certs(bodies...)}}
}

// TestAnchors proves PL-05: a bundle by name or by signer and labels, each certificate once and in the same order
// always; what is missing is an error unless it may be.
func TestAnchors(t *testing.T) {
	all := map[string]*certificatesv1.ClusterTrustBundle{}
	for _, b := range []*certificatesv1.ClusterTrustBundle{bundle("plain", "", "live", "z", "a", "z"),
		bundle("e.com:s:one", "e.com/s", "live", "1", "2"), bundle("e.com:s:two", "e.com/s", "old", "2", "3"), bundle("other", "e.com/o", "live", "9")} {
		all[b.Name] = b
	}
	live := &metav1.LabelSelector{MatchLabels: map[string]string{"v": "live"}}
	none := &metav1.LabelSelector{MatchLabels: map[string]string{"v": "none"}}
	yes := ptr.To(true)
	for _, c := range []struct {
		name string
		p    corev1.ClusterTrustBundleProjection
		want string
		err  string
	}{
		{"by name", corev1.ClusterTrustBundleProjection{Name: ptr.To("plain")}, certs("a", "z"), ""},
		{"missing", corev1.ClusterTrustBundleProjection{Name: ptr.To("no")}, "", `clustertrustbundle.certificates.k8s.io "no" not found`},
		{"may be missing", corev1.ClusterTrustBundleProjection{Name: ptr.To("no"), Optional: yes}, "", ""},
		{"of a signer", corev1.ClusterTrustBundleProjection{SignerName: ptr.To("e.com/s"), LabelSelector: &metav1.LabelSelector{}}, certs("1", "2", "3"), ""},
		{"by labels", corev1.ClusterTrustBundleProjection{SignerName: ptr.To("e.com/s"), LabelSelector: live}, certs("1", "2"), ""},
		{"no labels", corev1.ClusterTrustBundleProjection{SignerName: ptr.To("e.com/s"), LabelSelector: none}, "", "matched zero ClusterTrustBundles"},
		{"no labels, may be", corev1.ClusterTrustBundleProjection{SignerName: ptr.To("e.com/s"), LabelSelector: none, Optional: yes}, "", ""},
		{"no selector", corev1.ClusterTrustBundleProjection{SignerName: ptr.To("e.com/s")}, "", "matched zero ClusterTrustBundles"},
		{"neither", corev1.ClusterTrustBundleProjection{}, "", "either name or signerName"},
	} {
		got, err := anchors(&c.p, all)
		if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

// TestBundlesFollow proves PL-05: bundles are watched only while a pod shows some; a pod is told when what it shows has
// changed, and not when something else has.
func TestBundlesFollow(t *testing.T) {
	client := fake.NewClientset(bundle("mine", "", "", "1"))
	s, changed := open(t, client, time.Minute)
	s.Register(podWith("plain", "cm"))
	p := &corev1.ClusterTrustBundleProjection{Name: ptr.To("mine"), Path: "ca"}
	if _, err := s.TrustBundle(t.Context(), p); err == nil || s.bundles.cancel != nil {
		t.Error("bundles are watched for nobody", err)
	}
	pod := podWith("u")
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ClusterTrustBundle: p}}}}}}
	s.Register(pod)
	if got, err := s.TrustBundle(t.Context(), p); err != nil || !bytes.Equal(got, []byte(certs("1"))) {
		t.Fatalf("%q, %v", got, err)
	}
	watching(t, client, 2) // the ConfigMap's too
	bundles := client.CertificatesV1().ClusterTrustBundles()
	if _, err := bundles.Create(t.Context(), bundle("other", "", "", "2"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bundles.Update(t.Context(), bundle("mine", "", "", "3"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if uid := <-changed; uid != types.UID("u") {
		t.Error(uid)
	}
	if got, err := s.TrustBundle(t.Context(), p); err != nil || !bytes.Equal(got, []byte(certs("3"))) || len(changed) > 0 {
		t.Errorf("%q, %v, %d more changes", got, err, len(changed))
	}
	s.Unregister("u")
	if s.bundles.cancel != nil {
		t.Error("they are watched still")
	}
}
