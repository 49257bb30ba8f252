// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/certificates"
)

// Known is what a request for a pod's certificate names, as it is stored.
type Known struct {
	Node    *corev1.Node
	Pod     *corev1.Pod
	Account *corev1.ServiceAccount
}

// RestrictCertificate decides about a request for a certificate that a node makes: it is for a pod that it runs, and
// that shows a certificate of the signer.
func RestrictCertificate(node string, r *certificates.PodCertificateRequest, known Known) error {
	s := &r.Spec
	of := r.Namespace + "/" + s.PodName
	if string(s.NodeName) != node {
		return fmt.Errorf("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", s.NodeName,
			node)
	}
	_, mirror := known.Pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case known.Node.UID != s.NodeUID:
		return fmt.Errorf("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)",
			of, s.NodeUID, known.Node.UID)
	case known.Pod.UID != s.PodUID:
		return fmt.Errorf("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q",
			of, s.PodUID, known.Pod.UID)
	case known.Pod.Spec.NodeName != node:
		return fmt.Errorf("pod %q is not running on node %q named in the PodCertificateRequest", of, node)
	case mirror:
		return fmt.Errorf("pod %q is a mirror pod", of)
	case known.Pod.Spec.ServiceAccountName != s.ServiceAccountName:
		return fmt.Errorf("PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)",
			of, s.ServiceAccountName, known.Pod.Spec.ServiceAccountName)
	case known.Account.UID != s.ServiceAccountUID:
		return fmt.Errorf("PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)",
			of, s.ServiceAccountUID, known.Account.UID)
	case !slices.Contains(signers(known.Pod), s.SignerName):
		return fmt.Errorf("pod %q does not mount a podCertificate projected volume for signer %q", of, s.SignerName)
	}
	return nil
}

// signers are those whose certificates the pod's volumes show.
func signers(pod *corev1.Pod) (all []string) {
	for i := range pod.Spec.Volumes {
		if p := pod.Spec.Volumes[i].Projected; p != nil {
			for _, s := range p.Sources {
				if s.PodCertificate != nil {
					all = append(all, s.PodCertificate.SignerName)
				}
			}
		}
	}
	return all
}
