// SPDX-License-Identifier: Apache-2.0

package noderoutes

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

// Nodes are the nodes but the own one that have a network of their pods, by name. What is not an address or a network
// in an object counts as not there. (Pure.)
func Nodes(own string, list []*corev1.Node) (out []network.Node) {
	for _, n := range list {
		if n.Name == own {
			continue
		}
		node := network.Node{Name: n.Name, Networks: Networks(n)}
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP && ip.Zone() == "" {
				node.At = append(node.At, ip.Unmap())
			}
		}
		if len(node.Networks) > 0 && len(node.At) > 0 {
			out = append(out, node)
		}
	}
	slices.SortFunc(out, func(a, b network.Node) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Networks are those of a node's pods.
func Networks(n *corev1.Node) (out []netip.Prefix) {
	texts := n.Spec.PodCIDRs
	if len(texts) == 0 && n.Spec.PodCIDR != "" {
		texts = []string{n.Spec.PodCIDR}
	}
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil && !p.Addr().Is4In6() {
			out = append(out, p.Masked())
		}
	}
	return out
}
