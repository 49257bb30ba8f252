// SPDX-License-Identifier: Apache-2.0

package signers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/upstream"
	"github.com/wherryproject/wherry/internal/api/validation/certificates"
)

// Plugin judges requests for certificates: who approves or signs one needs the right to the signer it names (Kubernetes
// docs: "Certificates and Certificate Signing Requests", CertificateApproval, CertificateSigning,
// CertificateSubjectRestriction); and bundles of whom to trust, see judgeBundle.
type Plugin struct {
	authorizer func() authorizer.UnconditionalAuthorizer
}

// New makes the plug-in. It asks for who decides about rights when there is a request to be judged.
func New(authz func() authorizer.UnconditionalAuthorizer) Plugin { return Plugin{authz} }

var _ admission.ValidationInterface = Plugin{}

// Handles implements admission.Interface.
func (Plugin) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (p Plugin) Validate(ctx context.Context, a admission.Attributes,
	_ admission.ObjectInterfaces) error {
	switch a.GetResource().GroupResource() {
	case certificatesv1.Resource(upstream.TrustBundles):
		return p.judgeBundle(ctx, a)
	case certificatesv1.Resource(kinds.CertificateRequests):
	default:
		return nil
	}
	now, ok := a.GetObject().(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	if a.GetOperation() == admission.Create {
		if err := checkSubject(now); err != nil {
			return admission.NewForbidden(a, err)
		}
		return nil
	}
	was, ok := a.GetOldObject().(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return admission.NewForbidden(a, errors.New("the object before the change is missing"))
	}
	verb := ""
	switch a.GetSubresource() {
	case "approval":
		verb = "approve"
	case "status":
		if signs(now, was) {
			verb = "sign"
		}
	}
	if verb == "" || p.mayUseSigner(ctx, a.GetUserInfo(), verb, was.Spec.SignerName) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("user not permitted to %s requests with signerName %q", verb,
		was.Spec.SignerName))
}

// signs recognises a write of the status that is the signer's: a certificate, or what became of the request.
func signs(now, was *certificatesv1.CertificateSigningRequest) bool {
	return string(now.Status.Certificate) != string(was.Status.Certificate) ||
		!equality.Semantic.DeepEqual(now.Status.Conditions, was.Status.Conditions)
}

// checkSubject: nobody becomes a member of system:masters by a request.
func checkSubject(r *certificatesv1.CertificateSigningRequest) error {
	if r.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	csr, err := certificates.ParseRequest(r.Spec.Request)
	if err != nil {
		return fmt.Errorf("failed to parse CSR: %w", err)
	}
	if slices.Contains(csr.Subject.Organization, user.SystemPrivilegedGroup) {
		return fmt.Errorf("use of %s signer with %s group is not allowed", certificatesv1.KubeAPIServerClientSignerName,
			user.SystemPrivilegedGroup)
	}
	return nil
}

// mayUseSigner asks for the right to a signer, or to all of its domain.
func (p Plugin) mayUseSigner(ctx context.Context, who user.Info, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, _, err := p.authorizer().Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: verb, APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers", Name: name,
			ResourceRequest: true,
		})
		if err == nil && decision == authorizer.DecisionAllow {
			return true
		}
	}
	return false
}
