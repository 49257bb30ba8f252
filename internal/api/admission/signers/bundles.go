// SPDX-License-Identifier: Apache-2.0

package signers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/certificates"
)

// judgeBundle: who says whom to trust for a signer needs the right to speak for it (ClusterTrustBundleAttest). What is
// written again without a change, as when an owner is taken off, says nothing.
func (p Plugin) judgeBundle(ctx context.Context, a admission.Attributes) error {
	now, ok := a.GetObject().(*certificates.ClusterTrustBundle)
	if !ok || now.Spec.SignerName == "" {
		return nil
	}
	if was, ok := a.GetOldObject().(*certificates.ClusterTrustBundle); ok &&
		equality.Semantic.DeepEqual(was.Spec, now.Spec) &&
		equality.Semantic.DeepEqual(was.Labels, now.Labels) {
		return nil
	}
	if p.mayUseSigner(ctx, a.GetUserInfo(), "attest", now.Spec.SignerName) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("user not permitted to attest for signerName %q", now.Spec.SignerName))
}
