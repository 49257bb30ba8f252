// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// Agents are whom certificates are made for.
type Agents struct {
	Namespace, Account string // their service account
}

// Requester is the pod that has made a request, by its own bound token.
type Requester struct{ Pod, UID string }

// Who is the pod that asks; an error says that nobody asks who may.
func (a Agents) Who(csr *certificatesv1.CertificateSigningRequest) (Requester, error) {
	if want := serviceaccount.MakeUsername(a.Namespace, a.Account); csr.Spec.Username != want {
		return Requester{}, fmt.Errorf("%.200q asks, and certificates of agents are for %s alone", csr.Spec.Username,
			want)
	}
	pod, uid := csr.Spec.Extra[serviceaccount.PodNameKey], csr.Spec.Extra[serviceaccount.PodUIDKey]
	if len(pod) != 1 || len(uid) != 1 || pod[0] == "" || uid[0] == "" {
		return Requester{},
			errors.New("the request was not made with a token that is bound to a pod, and so does not tell on which node it was made")
	}
	return Requester{Pod: pod[0], UID: uid[0]}, nil
}

// Judge reads a request, and says why it must not be granted, if so. The pod is the one that [Agents.Who] has named;
// nil if there is none.
func (a Agents) Judge(csr *certificatesv1.CertificateSigningRequest,
	pod *corev1.Pod) (*x509.CertificateRequest, error) {
	who, err := a.Who(csr)
	if err != nil {
		return nil, err
	}
	switch {
	case csr.Spec.SignerName != wire.SignerName:
		return nil, fmt.Errorf("the signer is %s: this one is %s", csr.Spec.SignerName, wire.SignerName)
	case pod == nil || pod.Name != who.Pod || pod.Namespace != a.Namespace || string(pod.UID) != who.UID:
		return nil, fmt.Errorf("the pod %s (%s) that asks is not there any more", who.Pod, who.UID)
	case pod.Spec.ServiceAccountName != a.Account:
		return nil, fmt.Errorf("the pod %s that asks is of service account %s: agents are of %s", who.Pod,
			pod.Spec.ServiceAccountName, a.Account)
	case pod.Spec.NodeName == "":
		return nil, fmt.Errorf("the pod %s that asks has no node", who.Pod)
	}
	if err := usages(csr.Spec.Usages); err != nil {
		return nil, err
	}
	r, err := parse(csr.Spec.Request)
	if err != nil {
		return nil, err
	}
	return r, names(r, pod.Spec.NodeName)
}

// usages lets an agent serve, and nothing else.
func usages(all []certificatesv1.KeyUsage) error {
	for _, u := range all {
		if u != certificatesv1.UsageDigitalSignature && u != certificatesv1.UsageServerAuth {
			return fmt.Errorf("the use %q is asked for: an agent's certificate is for serving alone", u)
		}
	}
	if !slices.Contains(all, certificatesv1.UsageServerAuth) {
		return fmt.Errorf("the use %q is not asked for, and there is no other", certificatesv1.UsageServerAuth)
	}
	return nil
}

// names lets an agent be called what its node is.
func names(r *x509.CertificateRequest, node string) error {
	switch {
	case r.Subject.CommonName != wire.AgentPrefix+node:
		return fmt.Errorf("the name %.300q is asked for from node %s: it must be %s", r.Subject.CommonName, node,
			wire.AgentPrefix+node)
	case !slices.Equal(r.Subject.Organization, []string{wire.AgentOrg}):
		return fmt.Errorf("the organisations %.300q are asked for: it must be %s alone", r.Subject.Organization,
			wire.AgentOrg)
	case len(r.Subject.Names) != 2:
		return errors.New("the subject has more than a name and an organisation")
	case !slices.Equal(r.DNSNames, []string{wire.ServerName(node)}):
		return fmt.Errorf("the DNS names %.300q are asked for: it must be %s alone", r.DNSNames, wire.ServerName(node))
	case len(r.IPAddresses)+len(r.EmailAddresses)+len(r.URIs) > 0:
		return errors.New("addresses are asked for beside the DNS name")
	}
	return nil
}

// parse reads the request itself, and sees that whoever made it has the key.
func parse(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return nil, errors.New("spec.request is not one request in PEM form")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("spec.request: %w", err)
	}
	switch r.PublicKey.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return nil, fmt.Errorf("the key is a %T: an ECDSA or Ed25519 key is needed", r.PublicKey)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("spec.request is not signed with its key: %w", err)
	}
	return r, nil
}

const (
	// longest is how long an agent's certificate is valid, unless the agent asks for less.
	longest  = 7 * 24 * time.Hour
	shortest = 10 * time.Minute
)

// lifetime is how long a certificate is made for.
func lifetime(csr *certificatesv1.CertificateSigningRequest) time.Duration {
	if csr.Spec.ExpirationSeconds == nil {
		return longest
	}
	return min(longest, max(shortest, time.Duration(*csr.Spec.ExpirationSeconds)*time.Second))
}

// What has become of a request.
type state int

const (
	pending  state = iota
	approved       // and not signed yet
	over           // signed, denied or failed
)

func stateOf(csr *certificatesv1.CertificateSigningRequest) state {
	s := pending
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return over
		case certificatesv1.CertificateApproved:
			s = approved
		}
	}
	if len(csr.Status.Certificate) > 0 {
		return over
	}
	return s
}
