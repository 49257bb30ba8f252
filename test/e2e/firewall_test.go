// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFirewallInTheWayIsNamed: a chain that drops forwarded packets by policy is named when the server starts and in the node's condition
// (decision 004), and no longer when it has gone.
func TestFirewallInTheWayIsNamed(t *testing.T) {
	const table, chain = "e2e-firewall", "blocks-pods"
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	drop := nftables.ChainPolicyDrop
	of := conn.AddTable(&nftables.Table{Name: table, Family: nftables.TableFamilyINet})
	forward := conn.AddChain(&nftables.Chain{Name: chain, Table: of, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward,
		Priority: nftables.ChainPriorityFilter, Policy: &drop})
	// Other tests run on this machine: in fact nothing is dropped.
	conn.AddRule(&nftables.Rule{Table: of, Chain: forward, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}})
	there := true
	remove := func() error {
		if !there {
			return nil
		}
		there = false
		conn.DelTable(of)
		return conn.Flush()
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}

	s := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.79.0/24", "--bind-address", "127.0.0.1"}})
	k := kitOn(t, s)
	if log := s.LogTail(200); !strings.Contains(log, "a firewall may drop the packets of pods") || !strings.Contains(log, chain) {
		t.Errorf("the server's log does not name the chain:\n%s", log)
	}
	nodes := k.Client.CoreV1().Nodes()
	list, err := nodes.List(k.ctx(), metav1.ListOptions{})
	k.must(err)
	said := func(n *corev1.Node) corev1.NodeCondition {
		for _, c := range n.Status.Conditions {
			if c.Type == "wherry.dev/FirewallBlocksPods" {
				return c
			}
		}
		return corev1.NodeCondition{}
	}
	if c := said(&list.Items[0]); c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "chain "+chain+" of table inet "+table) {
		t.Errorf("the node's condition is %+v", c)
	}
	w, err := nodes.Watch(k.ctx(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	k.must(err)
	defer w.Stop()
	k.must(remove())
	for e := range w.ResultChan() {
		if n, ok := e.Object.(*corev1.Node); ok && !strings.Contains(said(n).Message, chain) {
			return
		}
	}
	t.Error("the chain has gone, and the node's condition still names it")
}
