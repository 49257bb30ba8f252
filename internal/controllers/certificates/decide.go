// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	certreq "github.com/wherryproject/wherry/internal/api/validation/certificates"
	"github.com/wherryproject/wherry/internal/pki"
)

// How long requests are kept: Kubernetes' ages.
const (
	keptAnswered = time.Hour
	keptPending  = 24 * time.Hour
)

// Action is what is due for a request.
type Action int

// The actions; Wait is nothing now.
const (
	Wait Action = iota
	Approve
	Sign
	Remove
)

// Decision is what is due for a request, and why; for Wait, when to look again (zero: when it changes).
type Decision struct {
	Action Action
	Why    string
	Again  time.Time
}

// Decide says what is due for a request at a time.
func Decide(r *certificatesv1.CertificateSigningRequest, now time.Time) Decision {
	end, why := ends(r)
	switch {
	case !now.Before(end):
		return Decision{Action: Remove, Why: why}
	case answered(r):
		return Decision{Again: end}
	case has(r, certificatesv1.CertificateApproved) != nil:
		if _, ours := policies()[r.Spec.SignerName]; ours {
			return Decision{Action: Sign}
		}
		return Decision{Again: end} // another signer's
	}
	if why := recognised(r); why != "" {
		return Decision{Action: Approve, Why: why}
	}
	return Decision{Again: end}
}

func has(r *certificatesv1.CertificateSigningRequest,
	t certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range r.Status.Conditions {
		if c := &r.Status.Conditions[i]; c.Type == t && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// answered: there is nothing to be done any more.
func answered(r *certificatesv1.CertificateSigningRequest) bool {
	return len(r.Status.Certificate) > 0 || has(r, certificatesv1.CertificateDenied) != nil ||
		has(r, certificatesv1.CertificateFailed) != nil
}

// ends is when a request is to be removed, and why then.
func ends(r *certificatesv1.CertificateSigningRequest) (at time.Time, why string) {
	at, why = r.CreationTimestamp.Add(keptPending), "nobody has approved it"
	for _, kind := range []struct {
		t   certificatesv1.RequestConditionType
		why string
	}{
		{certificatesv1.CertificateApproved, "it was answered"},
		{certificatesv1.CertificateFailed, "it has failed"},
		{certificatesv1.CertificateDenied, "it was denied"},
	} {
		if c := has(r, kind.t); c != nil {
			at, why = c.LastUpdateTime.Add(keptAnswered), kind.why
			if c.LastUpdateTime.IsZero() {
				at = r.CreationTimestamp.Add(keptAnswered)
			}
		}
	}
	if certs, err := pki.ParseCertificates(r.Status.Certificate); err == nil && certs[0].NotAfter.Before(at) {
		return certs[0].NotAfter, "its certificate has expired"
	}
	return at, why
}

// recognised says why a request needs no person to approve it, or "".
func recognised(r *certificatesv1.CertificateSigningRequest) string {
	if r.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return ""
	}
	csr, err := certreq.ParseRequest(r.Spec.Request)
	if err != nil || nodeClient(csr, r.Spec.Usages) != nil {
		return ""
	}
	switch {
	case slices.Contains(r.Spec.Groups, user.NodesGroup) && r.Spec.Username == csr.Subject.CommonName:
		return "Auto approving self kubelet client certificate: the node renews its own."
	case slices.Contains(r.Spec.Groups, bootstrapapi.BootstrapDefaultGroup):
		return "Auto approving kubelet client certificate: the node joins with a bootstrap token."
	}
	return ""
}
