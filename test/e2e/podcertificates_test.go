// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PL-05: a pod with a certificate of its own, which is good by the bundle beside it; a bundle that changes changes in the
// pod; a pod that needs one that is not there waits, says so, and starts when it comes.
func TestPodCertificate(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.pod(`
metadata: {name: p}
spec:
  containers:
  - {name: c, command: [sh, -c, IDLE], volumeMounts: [{name: tls, mountPath: /tls}]}
  - {name: watch, image: tool, args: [watch, /v], volumeMounts: [{name: trust, mountPath: /v}]}
  volumes:
  - name: tls
    projected:
      sources:
      - podCertificate: {signerName: wherry.dev/pod, keyType: ECDSAP256, keyPath: tls.key, certificateChainPath: tls.crt}
      - clusterTrustBundle: {signerName: wherry.dev/pod, labelSelector: {}, path: ca.crt}
      - clusterTrustBundle: {signerName: kubernetes.io/kube-apiserver-serving, labelSelector: {}, path: server.crt}
  - name: trust
    projected: {sources: [{clusterTrustBundle: {name: ` + k.Namespace + `, path: ca}}]}
`)
	k.WaitEvent("p", "FailedMount", `clustertrustbundle.certificates.k8s.io "`+k.Namespace+`" not found`)
	own, err := k.Client.CertificatesV1().ClusterTrustBundles().List(k.ctx(),
		metav1.ListOptions{FieldSelector: "spec.signerName=kubernetes.io/kube-apiserver-serving"})
	k.must(err)
	serving := own.Items[0].Spec.TrustBundle
	bundles := k.Client.CertificatesV1().ClusterTrustBundles()
	bundle, err := bundles.Create(k.ctx(), &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: k.Namespace},
		Spec: certificatesv1.ClusterTrustBundleSpec{TrustBundle: serving}}, metav1.CreateOptions{})
	k.must(err)
	t.Cleanup(func() { _ = bundles.Delete(k.ctx(), k.Namespace, metav1.DeleteOptions{}) })
	k.WaitReady("p")

	if got := k.sh("p", "c", "cat /tls/server.crt"); !strings.HasPrefix(got, "-----BEGIN CERTIFICATE-----") ||
		strings.TrimSpace(got) != strings.TrimSpace(serving) {
		t.Errorf("the server's bundle: %q, want %q", got, serving)
	}
	pair, err := tls.X509KeyPair([]byte(k.sh("p", "c", "cat /tls/tls.crt")), []byte(k.sh("p", "c", "cat /tls/tls.key")))
	k.must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(k.sh("p", "c", "cat /tls/ca.crt")))
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool}); err != nil {
		t.Error(err)
	}
	if want := "spiffe://cluster.local/ns/" + k.Namespace + "/sa/default"; pair.Leaf.URIs[0].String() != want {
		t.Errorf("it is for %s, want %s", pair.Leaf.URIs[0], want)
	}
	other := k.sh("p", "c", "cat /tls/ca.crt")
	bundle.Spec.TrustBundle = other + "\n" + serving
	_, err = bundles.Update(k.ctx(), bundle, metav1.UpdateOptions{})
	k.must(err)
	k.awaitLog("p", "watch", strings.Split(other, "\n")[1])

	k.pod(`
metadata: {name: denied}
spec:
  containers: [{name: c, command: [sh, -c, IDLE], volumeMounts: [{name: tls, mountPath: /tls}]}]
  volumes:
  - name: tls
    projected:
      sources: [{podCertificate: {signerName: wherry.dev/pod, keyType: ED25519, keyPath: k, userAnnotations: {example.com/a: b}}}]
`)
	k.WaitEvent("denied", "Denied", `was denied, reason="InvalidUnverifiedUserAnnotations"`)
	k.WaitEvent("denied", "FailedMount", "PodCertificateRequest was permanently denied")
}
