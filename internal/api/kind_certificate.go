// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/validation"
)

const requestsPlural = "certificatesigningrequests"

func certificateKinds() []*kind {
	return []*kind{
		{gv: certificatesv1.SchemeGroupVersion, name: "CertificateSigningRequest", plural: requestsPlural, singular: "certificatesigningrequest",
			short: []string{"csr"}, object: of[certificatesv1.CertificateSigningRequest], list: of[certificatesv1.CertificateSigningRequestList],
			rules: certificateRules(), status: status(certificateStatusRules()), fields: certificateFields},
	}
}

// addCertificates serves what requests for certificates have besides a plain kind.
func (s *Server) addCertificates(all served) {
	requests := s.stores[requestsPlural]
	requests.CreateStrategy = asRequestor{newStrategy(s.schemes, requests.kind, requests.kind.rules)}
	all.add(certificatesv1.SchemeGroupVersion, requestsPlural+"/approval", requests.sub(s.schemes, certificateApprovalRules()))
}

// asRequestor writes into a new request who has made it: what the signer goes by, and nobody may say of himself.
type asRequestor struct{ strategy }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (a asRequestor) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	a.strategy.PrepareForCreate(ctx, obj)
	who, ok := request.UserFrom(ctx)
	if !ok {
		return
	}
	spec := &obj.(*certificatesv1.CertificateSigningRequest).Spec
	info := userInfo(who)
	spec.Username, spec.UID, spec.Groups = info.Username, info.UID, info.Groups
	for key, values := range info.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		spec.Extra[key] = certificatesv1.ExtraValue(values)
	}
}

func certificateRules() rules {
	return typed[*certificatesv1.CertificateSigningRequest]{
		prepareCreate: func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Username, r.Spec.UID, r.Spec.Groups, r.Spec.Extra = "", "", nil, nil
			r.Status = certificatesv1.CertificateSigningRequestStatus{}
		},
		validate:       validation.ValidateCertificateSigningRequest,
		prepareUpdate:  func(r, old *certificatesv1.CertificateSigningRequest) { r.Spec, r.Status = old.Spec, old.Status },
		validateUpdate: validation.ValidateCertificateSigningRequestUpdate,
		mustHaveRV:     true,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status")),
	}.rules()
}

// certificateStatusRules are the signer's.
func certificateStatusRules() rules {
	return typed[*certificatesv1.CertificateSigningRequest]{
		prepareUpdate: func(r, old *certificatesv1.CertificateSigningRequest) {
			r.Spec = old.Spec
			stamp(r, old)
		},
		validateUpdate: validation.ValidateCertificateSigningRequestStatusUpdate,
		mustHaveRV:     true,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.rules()
}

// certificateApprovalRules are those of who approves or denies.
func certificateApprovalRules() rules {
	return typed[*certificatesv1.CertificateSigningRequest]{
		prepareUpdate: func(r, old *certificatesv1.CertificateSigningRequest) {
			r.Spec, r.Status.Certificate = old.Spec, old.Status.Certificate
			stamp(r, old)
		},
		validateUpdate: validation.ValidateCertificateSigningRequestApprovalUpdate,
		mustHaveRV:     true,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status", "certificate")),
	}.rules()
}

// stamp gives times to the conditions that are new.
func stamp(r, old *certificatesv1.CertificateSigningRequest) {
	now := metav1.Now()
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		before := slices.IndexFunc(old.Status.Conditions, func(o certificatesv1.CertificateSigningRequestCondition) bool { return o.Type == c.Type })
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

func certificateFields(obj runtime.Object) fields.Set {
	return fields.Set{"spec.signerName": obj.(*certificatesv1.CertificateSigningRequest).Spec.SignerName}
}
