// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// RequestedNetworks is the annotation of a node with the networks that it requests, separated by commas.
const RequestedNetworks = "wherry.dev/pod-networks"

// Join writes networks as the annotation has them.
func Join(list []netip.Prefix) string {
	var texts []string
	for _, p := range list {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ",")
}

// ParseRequested reads the annotation: at most one network of each family, of a size that pods fit into. Empty text
// requests nothing.
func ParseRequested(text string) ([]netip.Prefix, error) {
	if text == "" {
		return nil, nil
	}
	var out []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		p, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", RequestedNetworks, err)
		}
		if err := usable(p); err != nil {
			return nil, fmt.Errorf("annotation %s: %s %w", RequestedNetworks, p, err)
		}
		for _, q := range out {
			if q.Addr().Is4() == p.Addr().Is4() {
				return nil,
					fmt.Errorf("annotation %s: %s and %s are of one address family; a node has one network of each",
						RequestedNetworks, q, p)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// usable says what is wrong with a network for pods.
func usable(p netip.Prefix) error {
	a := p.Addr()
	switch {
	case a.Is4In6():
		return errors.New("is not written as IPv4")
	case p.Masked() != p:
		return fmt.Errorf("has host bits set: did you mean %s?", p.Masked())
	case a.Is4() && (p.Bits() < 8 || p.Bits() > 29), a.Is6() && (p.Bits() < 32 || p.Bits() > 125):
		return errors.New("is not of a size for the pods of one node")
	case a.IsLoopback(), a.IsMulticast(), a.IsLinkLocalUnicast(), !a.IsGlobalUnicast() && !a.IsPrivate():
		return errors.New("is not a network of ordinary addresses")
	}
	return nil
}
