// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/certificates"

	"github.com/wherryproject/wherry/internal/api/nodeauth"
)

// judgeCertificate decides about a certificate that a node asks for in the name of a pod.
func (p Plugin) judgeCertificate(ctx context.Context, node string, a admission.Attributes) error {
	r, ok := a.GetObject().(*certificates.PodCertificateRequest)
	if !ok || a.GetOperation() != admission.Create || a.GetSubresource() != "" {
		return fmt.Errorf("unexpected operation %v, node %q can only create requests for its pods' certificates",
			a.GetOperation(), node)
	}
	if string(r.Spec.NodeName) != node { // before anything is looked up for it
		return nodeauth.RestrictCertificate(node, r, nodeauth.Known{})
	}
	known := nodeauth.Known{}
	own, err := p.stores["nodes"].Get(ctx, node, &metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("node %q named in the PodCertificateRequest: %w", node, err)
	}
	known.Node, _ = own.(*corev1.Node)
	if known.Pod, err = p.stores.Pod(ctx, a.GetNamespace(), r.Spec.PodName); err != nil {
		return fmt.Errorf("pod %s/%s named in the PodCertificateRequest: %w", a.GetNamespace(), r.Spec.PodName, err)
	}
	if known.Account, err = p.stores.ServiceAccount(ctx, a.GetNamespace(), r.Spec.ServiceAccountName); err != nil {
		return fmt.Errorf("service account %s/%s named in the PodCertificateRequest: %w", a.GetNamespace(),
			r.Spec.ServiceAccountName, err)
	}
	return nodeauth.RestrictCertificate(node, r, known)
}
