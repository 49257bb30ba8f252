// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// RestrictNode decides about a node's write of a Node: old is nil for a new one. It may change nothing by which others
// decide what runs here: taints, owners, and labels that are not an agent's.
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
func RestrictNode(node string, obj, old *corev1.Node) error {
	if obj.Name != node {
		return fmt.Errorf("node %q is not allowed to modify node %q", node, obj.Name)
	}
	var was map[string]string
	if old != nil {
		was = old.Labels
		if !equality.Semantic.DeepEqual(obj.Spec.Taints, old.Spec.Taints) {
			return fmt.Errorf("node %q is not allowed to modify taints", node)
		}
		if !equality.Semantic.DeepEqual(obj.OwnerReferences, old.OwnerReferences) {
			return fmt.Errorf("node %q is not allowed to modify ownerReferences", node)
		}
	} else if len(obj.OwnerReferences) > 0 {
		return fmt.Errorf("node %q is not allowed to set ownerReferences", node)
	}
	if err := restrictNetworks(node, obj, old); err != nil {
		return err
	}
	var bad []string
	for _, label := range changed(obj.Labels, was) {
		if reserved(label) {
			bad = append(bad, label)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("is not allowed to modify labels: %s", strings.Join(bad, ", "))
	}
	return nil
}

// restrictNetworks has a node leave its pod networks to the cluster: it could else take another node's, and be sent the
// packets of that one's pods (decision 062).
func restrictNetworks(node string, obj, old *corev1.Node) error {
	var was corev1.NodeSpec
	if old != nil {
		was = old.Spec
	}
	if obj.Spec.PodCIDR == was.PodCIDR && slices.Equal(obj.Spec.PodCIDRs, was.PodCIDRs) {
		return nil
	}
	return fmt.Errorf("node %q is not allowed to set its podCIDRs: the cluster gives them; a node may request some in its annotation wherry.dev/pod-networks",
		node)
}

// changed are the labels that are not the same in both.
func changed(now, was map[string]string) []string {
	var keys []string
	for key := range now {
		if value, ok := was[key]; !ok || value != now[key] {
			keys = append(keys, key)
		}
	}
	for key := range maps.Keys(was) {
		if _, ok := now[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// reserved labels are Kubernetes' but not the agent's to set.
func reserved(label string) bool {
	domain, _, qualified := strings.Cut(label, "/")
	if !qualified || !under(domain, "kubernetes.io") && !under(domain, "k8s.io") {
		return false
	}
	switch label {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os",
		"beta.kubernetes.io/arch",
		corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelTopologyRegion, corev1.LabelTopologyZone,
		corev1.LabelFailureDomainBetaRegion, corev1.LabelFailureDomainBetaZone:
		return false
	}
	return !under(domain, "kubelet.kubernetes.io") && !under(domain, "node.kubernetes.io")
}

func under(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

// RestrictLease decides about a node's write of a lease.
func RestrictLease(node string, lease *coordinationv1.Lease) error {
	switch {
	case lease.Namespace != corev1.NamespaceNodeLease:
		return fmt.Errorf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case lease.Name != node:
		return fmt.Errorf("can only access node lease with the same name as the requesting node")
	}
	return nil
}

// RestrictCSR decides about a node's request for a certificate: for the signers of nodes' certificates, only for
// itself.
func RestrictCSR(node string, csr *certificatesv1.CertificateSigningRequest) error {
	switch csr.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName:
	default:
		return nil
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return fmt.Errorf("unable to parse csr: it is not PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return fmt.Errorf("unable to parse csr: %w", err)
	}
	if name := "system:node:" + node; request.Subject.CommonName != name {
		return fmt.Errorf("can only create a node CSR with CN=%s", name)
	}
	return nil
}
