// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	certreq "github.com/wherryproject/wherry/internal/api/validation/certificates"
)

const (
	nodeUserPrefix = "system:node:"
	// backdate lets those whose clock is a little behind accept the certificate at once. A short-lived one has less of
	// it: its holder reckons from it when to renew, and must not find that time past.
	backdate = 5 * time.Minute
)

// policy says what a signer refuses.
type policy func(csr *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error

// policies are those of the signers this controller is.
func policies() map[string]policy {
	return map[string]policy{
		certificatesv1.KubeAPIServerClientSignerName:        apiClient,
		certificatesv1.KubeAPIServerClientKubeletSignerName: nodeClient,
		certificatesv1.KubeletServingSignerName:             nodeServing,
	}
}

func apiClient(_ *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	return checkUsages(usages, certificatesv1.UsageClientAuth, nil)
}

func nodeClient(csr *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	if len(csr.DNSNames)+len(csr.IPAddresses)+len(csr.EmailAddresses)+len(csr.URIs) > 0 {
		return errors.New("subject alternative names are not allowed")
	}
	return errors.Join(nodeSubject(csr), checkUsages(usages, certificatesv1.UsageClientAuth,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}))
}

func nodeServing(csr *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case len(csr.EmailAddresses)+len(csr.URIs) > 0:
		return errors.New("email and URI subject alternative names are not allowed")
	case len(csr.DNSNames)+len(csr.IPAddresses) == 0:
		return errors.New("at least one DNS name or IP address is required as subject alternative name")
	}
	return errors.Join(nodeSubject(csr), checkUsages(usages, certificatesv1.UsageServerAuth,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}))
}

func nodeSubject(csr *x509.CertificateRequest) error {
	if !slices.Equal(csr.Subject.Organization, []string{user.NodesGroup}) {
		return fmt.Errorf("the subject's organisation must be exactly %s, it is %v", user.NodesGroup,
			csr.Subject.Organization)
	}
	if name, ok := strings.CutPrefix(csr.Subject.CommonName, nodeUserPrefix); !ok || name == "" {
		return fmt.Errorf("the subject's common name must be %s and the node's name, it is %q", nodeUserPrefix,
			csr.Subject.CommonName)
	}
	return nil
}

// checkUsages: the purpose must be there, with what else is needed, and nothing but what TLS needs.
func checkUsages(usages []certificatesv1.KeyUsage, purpose certificatesv1.KeyUsage,
	needed []certificatesv1.KeyUsage) error {
	for _, u := range append(needed, purpose) {
		if !slices.Contains(usages, u) {
			return fmt.Errorf("usages must include %q", u)
		}
	}
	for _, u := range usages {
		switch u {
		case purpose, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return fmt.Errorf("usage %q is not allowed", u)
		}
	}
	return nil
}

// Template is the certificate that an approved request is good for, which lives as long as was asked for, at most
// longest. The error says why its signer refuses it, for the requestor.
func Template(r *certificatesv1.CertificateSigningRequest, now time.Time,
	longest time.Duration) (*x509.Certificate, *x509.CertificateRequest, error) {
	check, ok := policies()[r.Spec.SignerName]
	if !ok {
		return nil, nil, fmt.Errorf("signer %s is not served here", r.Spec.SignerName)
	}
	csr, err := certreq.ParseRequest(r.Spec.Request)
	if err != nil {
		return nil, nil, err
	}
	if err := check(csr, r.Spec.Usages); err != nil {
		return nil, nil, err
	}
	lifetime := longest
	if n := r.Spec.ExpirationSeconds; n != nil {
		lifetime = min(lifetime, time.Duration(*n)*time.Second)
	}
	t := &x509.Certificate{
		Subject: csr.Subject, DNSNames: csr.DNSNames, IPAddresses: csr.IPAddresses, EmailAddresses: csr.EmailAddresses,
		URIs: csr.URIs, NotBefore: now.Add(-min(backdate, lifetime/10)), NotAfter: now.Add(lifetime),
	}
	for _, u := range r.Spec.Usages {
		switch u {
		case certificatesv1.UsageDigitalSignature:
			t.KeyUsage |= x509.KeyUsageDigitalSignature
		case certificatesv1.UsageKeyEncipherment:
			t.KeyUsage |= x509.KeyUsageKeyEncipherment
		case certificatesv1.UsageClientAuth:
			t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
		case certificatesv1.UsageServerAuth:
			t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		}
	}
	return t, csr, nil
}
