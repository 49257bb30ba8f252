// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/api/validation/certificates"
)

// CertificateRequests is the resource of requests for certificates.
const CertificateRequests = "certificatesigningrequests"

func certificateKinds() []*registry.Kind {
	return []*registry.Kind{
		{GV: certificatesv1.SchemeGroupVersion, Name: "CertificateSigningRequest", Plural: CertificateRequests,
			Singular: "certificatesigningrequest", Short: []string{"csr"},
			Object: registry.New[certificatesv1.CertificateSigningRequest],
			List:   registry.New[certificatesv1.CertificateSigningRequestList], Rules: certificateRules(),
			Status: status(certificateStatusRules()), Fields: certificateFields},
	}
}

// serveCertificates serves what requests for certificates have besides a plain kind.
func serveCertificates(all registry.Served, requests *registry.REST, types *schemes.Schemes) {
	requests.CreateStrategy = asRequestor{registry.NewStrategy(types, requests.Kind, requests.Kind.Rules)}
	all.Add(certificatesv1.SchemeGroupVersion, CertificateRequests+"/approval",
		requests.Sub(types, certificateApprovalRules()))
}

// asRequestor writes into a new request who has made it: what the signer goes by, and nobody may say of himself.
type asRequestor struct{ registry.Strategy }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (a asRequestor) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	a.Strategy.PrepareForCreate(ctx, obj)
	who, ok := request.UserFrom(ctx)
	if !ok {
		return
	}
	spec := &obj.(*certificatesv1.CertificateSigningRequest).Spec
	info := authn.UserInfo(who)
	spec.Username, spec.UID, spec.Groups = info.Username, info.UID, info.Groups
	for key, values := range info.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		spec.Extra[key] = certificatesv1.ExtraValue(values)
	}
}

func certificateRules() registry.Rules {
	return registry.Typed[*certificatesv1.CertificateSigningRequest]{
		PrepareCreate: func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Username, r.Spec.UID, r.Spec.Groups, r.Spec.Extra = "", "", nil, nil
			r.Status = certificatesv1.CertificateSigningRequestStatus{}
		},
		Validate: certificates.ValidateCertificateSigningRequest,
		PrepareUpdate: func(r,
			old *certificatesv1.CertificateSigningRequest) {
			r.Spec, r.Status = old.Spec, old.Status
		},
		ValidateUpdate: certificates.ValidateCertificateSigningRequestUpdate,
		MustHaveRV:     true,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status")),
	}.Rules()
}

// certificateStatusRules are the signer's.
func certificateStatusRules() registry.Rules {
	return registry.Typed[*certificatesv1.CertificateSigningRequest]{
		PrepareUpdate: func(r, old *certificatesv1.CertificateSigningRequest) {
			r.Spec = old.Spec
			keepVerdicts(r, old)
			stamp(r, old)
		},
		ValidateUpdate: certificates.ValidateCertificateSigningRequestStatusUpdate,
		MustHaveRV:     true,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.Rules()
}

// certificateApprovalRules are those of who approves or denies.
func certificateApprovalRules() registry.Rules {
	return registry.Typed[*certificatesv1.CertificateSigningRequest]{
		PrepareUpdate: func(r, old *certificatesv1.CertificateSigningRequest) {
			r.Spec, r.Status.Certificate = old.Spec, old.Status.Certificate
			stamp(r, old)
		},
		ValidateUpdate: certificates.ValidateCertificateSigningRequestApprovalUpdate,
		MustHaveRV:     true,
		Reset: fieldpath.NewSet(fieldpath.MakePathOrDie("spec"),
			fieldpath.MakePathOrDie("status", "certificate")),
	}.Rules()
}

// stamp gives times to the conditions that are new.
func stamp(r, old *certificatesv1.CertificateSigningRequest) {
	now := metav1.Now()
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		before := slices.IndexFunc(old.Status.Conditions,
			func(o certificatesv1.CertificateSigningRequestCondition) bool { return o.Type == c.Type })
		if before >= 0 && old.Status.Conditions[before].Status == c.Status {
			if c.LastTransitionTime.IsZero() {
				c.LastTransitionTime = old.Status.Conditions[before].LastTransitionTime
			}
		} else if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = now
		}
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
	}
}

// keepVerdicts keeps the conditions that only the approval subresource may change as they were: a signer that sends
// them back otherwise is not refused for it.
func keepVerdicts(r, old *certificatesv1.CertificateSigningRequest) {
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if c.Type != certificatesv1.CertificateApproved && c.Type != certificatesv1.CertificateDenied {
			continue
		}
		same := func(o certificatesv1.CertificateSigningRequestCondition) bool { return o.Type == c.Type }
		if before := slices.IndexFunc(old.Status.Conditions, same); before >= 0 &&
			slices.IndexFunc(r.Status.Conditions, same) == i {
			*c = old.Status.Conditions[before]
		}
	}
}

func certificateFields(obj runtime.Object) fields.Set {
	return fields.Set{"spec.signerName": obj.(*certificatesv1.CertificateSigningRequest).Spec.SignerName}
}
