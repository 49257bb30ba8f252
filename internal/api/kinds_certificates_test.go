// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// certificateSamples are those of certificates for pods. A key that cannot be made is a broken machine.
func certificateSamples(m metav1.ObjectMeta) map[schema.GroupVersionResource]runtime.Object {
	gv := certificatesv1.SchemeGroupVersion
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	proof, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		panic(err)
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sample"}, IsCA: true,
		BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return map[schema.GroupVersionResource]runtime.Object{
		gv.WithResource("clustertrustbundles"): &certificatesv1.ClusterTrustBundle{ObjectMeta: m,
			Spec: certificatesv1.ClusterTrustBundleSpec{
				TrustBundle: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}},
		gv.WithResource("podcertificaterequests"): &certificatesv1.PodCertificateRequest{ObjectMeta: m,
			Spec: certificatesv1.PodCertificateRequestSpec{SignerName: "sample.test/signer", PodName: "pod",
				PodUID: "1", ServiceAccountName: "default", ServiceAccountUID: "2", NodeName: "node", NodeUID: "3",
				StubPKCS10Request: proof}},
	}
}
