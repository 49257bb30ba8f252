// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/labels"
)

// Names is the server's own resolver of names. It is a process of the machine; policies see it as the pod that answers
// names in other clusters, so that what people write for those holds here.
type Names struct {
	Asked  netip.AddrPort // whom pods ask: the service's address
	Listen netip.AddrPort // where packets to that are sent
}

// The name server's namespace and label, as everywhere.
const (
	NamesNamespace  = "kube-system"
	namesLabel      = "k8s-app"
	namesLabelValue = "kube-dns"
)

func (n *Names) end() end {
	return end{addr: n.Asked.Addr(), pod: true, namespace: NamesNamespace,
		labels: labels.Set{namesLabel: namesLabelValue}}
}

// portName is that of the port, as in the pods of other clusters.
func (*Names) portName(p Proto) string {
	if p == TCP {
		return "dns-tcp"
	}
	return "dns"
}
