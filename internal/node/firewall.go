// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// FirewallBlocksPods is the condition of a node that says which firewall chains may drop pods' packets. It keeps no pod
// away: those that need no network outside of the machine run well.
const FirewallBlocksPods corev1.NodeConditionType = "wherry.dev/FirewallBlocksPods"

// firewallCondition words what was found of chains that may drop pods' packets.
func firewallCondition(chains []string, err error) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: FirewallBlocksPods, Status: corev1.ConditionFalse, Reason: "NothingDropsForwarded",
		Message: "no firewall chain drops forwarded packets by policy"}
	switch {
	case err != nil:
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "FirewallUnreadable",
			"the firewall's chains cannot be read: "+err.Error()
	case len(chains) > 0:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "ForwardedDropped", FirewallMessage(chains)
	}
	return c
}

// FirewallMessage says what chains that drop forwarded packets mean for pods.
func FirewallMessage(chains []string) string {
	return strings.Join(chains, ", ") +
		": drops forwarded packets by policy, and no rule there is about the bridge of the pods: " +
		"they may reach nothing outside this machine; have the firewall accept packets from and to the bridge"
}
