// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

const (
	// minCertificateSeconds is the shortest lifetime one may ask for (CertificateSigningRequestSpec).
	minCertificateSeconds = 600
	// maxSignerName is a namespace and a name, as signers of resources have them, and the dots and slash between.
	maxSignerName = 571
	// maxRSABits: checking a signature takes time with the square of it, and anybody may choose it.
	maxRSABits = 8192
)

// ParseRequest reads the PKCS#10 request of a CertificateSigningRequest and checks that who made it holds the key.
func ParseRequest(data []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	if len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("there must be one PEM block and nothing after it")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if key, ok := csr.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return nil, fmt.Errorf("the RSA key has %d bits; at most %d are accepted", key.N.BitLen(), maxRSABits)
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the signature is not that of the key in the request: %w", err)
	}
	return csr, nil
}

// ValidateCertificateSigningRequest checks a new one.
func ValidateCertificateSigningRequest(r *certificatesv1.CertificateSigningRequest) (all rules.Errs) {
	all = rules.ClusterMeta(&r.ObjectMeta, rules.AnyName)
	spec := field.NewPath("spec")
	if len(r.Spec.Request) == 0 {
		all = append(all, field.Required(spec.Child("request"), ""))
	} else if _, err := ParseRequest(r.Spec.Request); err != nil {
		all = append(all, field.Invalid(spec.Child("request"), r.Spec.Request, err.Error()))
	}
	all = append(all, usages(spec.Child("usages"), r.Spec.Usages)...)
	all = append(all, signerName(spec.Child("signerName"), r.Spec.SignerName)...)
	if n := r.Spec.ExpirationSeconds; n != nil && *n < minCertificateSeconds {
		all = append(all, field.Invalid(spec.Child("expirationSeconds"), *n,
			"may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return append(all, conditions(field.NewPath("status", "conditions"), r.Status.Conditions)...)
}

func usages(path *field.Path, list []certificatesv1.KeyUsage) (all rules.Errs) {
	if len(list) == 0 {
		return rules.Errs{field.Required(path, "usages is required")}
	}
	for i, u := range list {
		if !slices.Contains(knownUsages(), u) {
			all = append(all, field.NotSupported(path.Index(i), u, knownUsages()))
		} else if slices.Contains(list[:i], u) {
			all = append(all, field.Duplicate(path.Index(i), u))
		}
	}
	return all
}

func knownUsages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{
		certificatesv1.UsageAny, certificatesv1.UsageCRLSign, certificatesv1.UsageCertSign,
		certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageContentCommitment,
		certificatesv1.UsageDataEncipherment, certificatesv1.UsageDecipherOnly, certificatesv1.UsageDigitalSignature,
		certificatesv1.UsageEmailProtection, certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem,
		certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageKeyAgreement,
		certificatesv1.UsageKeyEncipherment, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
		certificatesv1.UsageOCSPSigning, certificatesv1.UsageSMIME, certificatesv1.UsageServerAuth,
		certificatesv1.UsageSigning, certificatesv1.UsageTimestamping,
	}
}

// signerName: a domain of at least two labels, a slash, and a path of labels with dots between.
func signerName(path *field.Path, name string) (all rules.Errs) {
	domain, rest, slash := strings.Cut(name, "/")
	switch {
	case name == "":
		return rules.Errs{field.Required(path, "")}
	case len(name) > maxSignerName:
		return rules.Errs{field.TooLong(path, name, maxSignerName)}
	case !slash || strings.Contains(rest, "/"):
		return rules.Errs{field.Invalid(path, name,
			"must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	case name == "kubernetes.io/legacy-unknown":
		return rules.Errs{field.Invalid(path, name, "the legacy signerName is not allowed via this API version")}
	}
	all = append(all, utilvalidation.IsFullyQualifiedDomainName(path, domain)...)
	for _, words := range utilvalidation.IsDNS1123Subdomain(rest) {
		all = append(all, field.Invalid(path, rest, "path part: "+words))
	}
	return all
}

// conditions: each kind of them once; a verdict is True; nobody both approves and denies.
func conditions(path *field.Path, list []certificatesv1.CertificateSigningRequestCondition) (all rules.Errs) {
	seen := map[certificatesv1.RequestConditionType]bool{}
	for i, c := range list {
		at := path.Index(i)
		switch {
		case c.Type == "":
			all = append(all, field.Required(at.Child("type"), ""))
		case seen[c.Type]:
			all = append(all, field.Duplicate(at.Child("type"), c.Type))
		}
		seen[c.Type] = true
		switch c.Status {
		case "":
			all = append(all, field.Required(at.Child("status"), ""))
		case corev1.ConditionTrue:
		case corev1.ConditionFalse, corev1.ConditionUnknown:
			if verdict(c.Type) || c.Type == certificatesv1.CertificateFailed {
				all = append(all, field.NotSupported(at.Child("status"), c.Status,
					[]corev1.ConditionStatus{corev1.ConditionTrue}))
			}
		default:
			all = append(all, field.NotSupported(at.Child("status"), c.Status,
				[]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}))
		}
	}
	if seen[certificatesv1.CertificateApproved] && seen[certificatesv1.CertificateDenied] {
		all = append(all, field.Invalid(path, certificatesv1.CertificateDenied,
			"Approved and Denied conditions are mutually exclusive"))
	}
	return all
}

func verdict(t certificatesv1.RequestConditionType) bool {
	return t == certificatesv1.CertificateApproved || t == certificatesv1.CertificateDenied
}

// ValidateCertificateSigningRequestUpdate allows changes of metadata; the rules have kept everything else as it was.
func ValidateCertificateSigningRequestUpdate(now, was *certificatesv1.CertificateSigningRequest) rules.Errs {
	return rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
}

// ValidateCertificateSigningRequestStatusUpdate is for the signer, who gives the certificate or says why not, once.
func ValidateCertificateSigningRequestStatusUpdate(now, was *certificatesv1.CertificateSigningRequest) rules.Errs {
	all := certificateUpdate(now, was)
	path := field.NewPath("status", "certificate")
	switch {
	case len(was.Status.Certificate) > 0 && string(now.Status.Certificate) != string(was.Status.Certificate):
		all = append(all, field.Forbidden(path, "updates may not set a new certificate value once one has been set"))
	case len(now.Status.Certificate) > 0 && len(was.Status.Certificate) == 0:
		if err := issued(now.Status.Certificate); err != nil {
			all = append(all, field.Invalid(path, "<certificate data>", err.Error()))
		}
	}
	return append(all, sameVerdict(now, was)...)
}

// ValidateCertificateSigningRequestApprovalUpdate is for who approves or denies, once.
func ValidateCertificateSigningRequestApprovalUpdate(now, was *certificatesv1.CertificateSigningRequest) rules.Errs {
	all := certificateUpdate(now, was)
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved,
		certificatesv1.CertificateDenied, certificatesv1.CertificateFailed} {
		all = append(all, kept(t, now, was)...)
	}
	return all
}

func certificateUpdate(now, was *certificatesv1.CertificateSigningRequest) rules.Errs {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta),
		conditions(field.NewPath("status", "conditions"), now.Status.Conditions)...)
}

// sameVerdict: only the approval subresource changes Approved and Denied.
func sameVerdict(now, was *certificatesv1.CertificateSigningRequest) (all rules.Errs) {
	path := field.NewPath("status", "conditions")
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved,
		certificatesv1.CertificateDenied} {
		if condition(was, t) == nil && condition(now, t) != nil {
			all = append(all, field.Forbidden(path, fmt.Sprintf("updates may not add a condition of type %q", t)))
		}
		before, after := condition(was, t), condition(now, t)
		if before != nil && after != nil && !equality.Semantic.DeepEqual(before, after) {
			all = append(all, field.Forbidden(path, fmt.Sprintf("updates may not modify a condition of type %q", t)))
		}
		all = append(all, kept(t, now, was)...)
	}
	return append(all, kept(certificatesv1.CertificateFailed, now, was)...)
}

// kept: a condition that was there stays. What it says may change, by who may write it.
func kept(t certificatesv1.RequestConditionType, now, was *certificatesv1.CertificateSigningRequest) rules.Errs {
	if condition(was, t) == nil || condition(now, t) != nil {
		return nil
	}
	return rules.Errs{field.Forbidden(field.NewPath("status", "conditions"),
		fmt.Sprintf("updates may not remove a condition of type %q", t))}
}

func condition(r *certificatesv1.CertificateSigningRequest,
	t certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == t {
			return &r.Status.Conditions[i]
		}
	}
	return nil
}

// issued checks that what a signer gives is a chain of certificates in PEM form, without headers.
func issued(data []byte) error {
	n := 0
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) > 0 {
			return errors.New("no PEM block headers are permitted")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}
