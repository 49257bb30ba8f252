// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"net/netip"
	"strings"
)

// Wish is the annotation of a node with the networks that it would like to have.
const Wish = "wherry.dev/pod-networks"

// Join writes networks as the annotation has them.
func Join(list []netip.Prefix) string {
	var texts []string
	for _, p := range list {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ",")
}
