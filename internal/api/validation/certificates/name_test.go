// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// TestCertificateRequestNames: a kubelet that joins calls its request by a hash in base64, capitals and all.
func TestCertificateRequestNames(t *testing.T) {
	for name, good := range map[string]bool{"node-csr-c69HXe7aYcqkS1bKmH4faEnHAWxn6i2bHZ2mD04jZ_Q": true, "csr-x7k2p": true, "a/b": false, "..": false} {
		r := &certificatesv1.CertificateSigningRequest{}
		r.Name = name
		refused := false
		for _, e := range ValidateCertificateSigningRequest(r) {
			refused = refused || strings.HasPrefix(e.Field, "metadata.name")
		}
		if refused == good {
			t.Errorf("%q: refused %v", name, refused)
		}
	}
}
