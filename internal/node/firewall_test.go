// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestFirewallCondition proves what the node's condition says of chains that may drop pods' packets.
func TestFirewallCondition(t *testing.T) {
	for _, c := range []struct {
		chains []string
		err    error
		status corev1.ConditionStatus
		says   string
	}{
		{nil, nil, corev1.ConditionFalse, "no firewall chain"},
		{[]string{"chain FORWARD of table ip filter", "chain f of table inet x"}, nil, corev1.ConditionTrue, "chain FORWARD of table ip filter, chain f of table inet x: "},
		{nil, errors.New("nftables: odd"), corev1.ConditionUnknown, "nftables: odd"},
	} {
		got := firewallCondition(c.chains, c.err)
		if got.Type != FirewallBlocksPods || got.Status != c.status || !strings.Contains(got.Message, c.says) || got.Reason == "" {
			t.Errorf("%v, %v: %+v", c.chains, c.err, got)
		}
	}
}
