// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/memory"
	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/node/numa/bank"
)

func banks(nodes int) memory.Banks {
	out := memory.Banks{Nodes: 1<<nodes - 1, Of: bank.Machine{}}
	for n := range nodes {
		out.Of[n] = bank.Amounts{corev1.ResourceMemory: 4 << 30, "hugepages-2Mi": 8 << 20}
	}
	return out
}

// PL-33: how memory is given and things are brought together, in the kubelet's words, and what is wrong with them.
func TestPlacingOptions(t *testing.T) {
	type options = map[string]string
	for _, tt := range []struct {
		name  string
		k     KubeletOptions
		nodes int
		says  string // "": it is taken
	}{
		{"nothing", KubeletOptions{}, 2, ""},
		{"as by default", defaultKubelet(), 16, ""},
		{"static", KubeletOptions{MemoryPolicy: MemoryPolicyStatic, ReservedMemory: []string{"0:memory=1Gi"}}, 2, ""},
		{"two lists", KubeletOptions{ReservedMemory: []string{"0:memory=1Gi,hugepages-2Mi=2Mi;1:memory=1Gi"}}, 2, ""},
		{"twice the flag", KubeletOptions{ReservedMemory: []string{"0:memory=1Gi", "1:memory=1Gi;"}}, 2, ""},
		{"nothing reserved", KubeletOptions{MemoryPolicy: MemoryPolicyStatic}, 2,
			"--memory-manager-policy Static: set --reserved-memory, for example 0:memory=1Gi"},
		{"static in small letters", KubeletOptions{MemoryPolicy: "static"}, 2,
			`--memory-manager-policy: "static" must be None or Static`},
		{"no node", KubeletOptions{ReservedMemory: []string{"memory=1Gi"}}, 2,
			`--reserved-memory: "memory=1Gi" must be a NUMA node and what is reserved of it`},
		{"a node twice", KubeletOptions{ReservedMemory: []string{"0:memory=1Gi", "0:memory=1Gi"}}, 2,
			"--reserved-memory: NUMA node 0 is named twice"},
		{"memory twice", KubeletOptions{ReservedMemory: []string{"0:memory=1Gi,memory=1Gi"}}, 2,
			"--reserved-memory: NUMA node 0: memory is named twice"},
		{"CPUs", KubeletOptions{ReservedMemory: []string{"0:cpu=1"}}, 2,
			`--reserved-memory: NUMA node 0: "cpu=1" must be memory or hugepages-SIZE, with =AMOUNT`},
		{"no amount", KubeletOptions{ReservedMemory: []string{"0:memory=much"}}, 2,
			`--reserved-memory: NUMA node 0: "much" is not an amount of memory`},
		{"another machine's node", KubeletOptions{ReservedMemory: []string{"2:memory=1Gi"}}, 2,
			"--reserved-memory: this machine has no memory in NUMA node 2; it has 0-1"},
		{"more than there is", KubeletOptions{ReservedMemory: []string{"1:memory=5Gi"}}, 2,
			"--reserved-memory: NUMA node 1 has not memory 5Gi, but memory 4Gi"},
		{"no such pages", KubeletOptions{ReservedMemory: []string{"1:hugepages-1Gi=1Gi"}}, 2,
			"--reserved-memory: NUMA node 1 has not hugepages-1Gi 1Gi, but hugepages-1Gi 0"},
		{"single", KubeletOptions{TopologyPolicy: "single-numa-node", TopologyScope: ScopePod,
			TopologyOptions: options{preferClosest: "true"}}, 2, ""},
		{"another policy", KubeletOptions{TopologyPolicy: "strict"}, 2,
			`--topology-manager-policy: "strict" must be one of [none best-effort restricted single-numa-node]`},
		{"another scope", KubeletOptions{TopologyScope: "node"}, 2,
			`--topology-manager-scope: "node" must be container or pod`},
		{"options of none", KubeletOptions{TopologyOptions: options{preferClosest: "true"}}, 2,
			"--topology-manager-policy-options: with --topology-manager-policy none there are none"},
		{"no such option", KubeletOptions{TopologyPolicy: "restricted", TopologyOptions: options{"far": "true"}}, 2,
			`--topology-manager-policy-options: "far" is not supported: prefer-closest-numa-nodes and max-allowable-numa-nodes are`},
		{"no truth", KubeletOptions{TopologyPolicy: "restricted", TopologyOptions: options{preferClosest: "yes"}}, 2,
			`--topology-manager-policy-options: prefer-closest-numa-nodes="yes" must be true or false`},
		{"too many nodes", KubeletOptions{TopologyPolicy: "restricted"}, 9,
			"--topology-manager-policy restricted: this machine has 9 NUMA nodes, more than max-allowable-numa-nodes allows (8)"},
		{"many nodes", KubeletOptions{TopologyPolicy: "restricted", TopologyOptions: options{maxNUMANodes: "9"}}, 9,
			""},
		{"as many as anybody", KubeletOptions{TopologyPolicy: "restricted",
			TopologyOptions: options{maxNUMANodes: "64"}}, 9,
			`--topology-manager-policy-options: max-allowable-numa-nodes="64" must be 8 to 12`},
		{"sockets and one node", KubeletOptions{TopologyPolicy: "single-numa-node",
			CPUOptions: options{alignBySocket: "true"}},
			2, "--topology-manager-policy single-numa-node: the CPU manager's option align-by-socket is not for it"},
	} {
		got, err := tt.k.placingOn(banks(tt.nodes))
		switch {
		case tt.says == "" && err != nil, tt.says != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.says)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		case tt.name == "static" && (got.Memory[0][corev1.ResourceMemory] != 3<<30 ||
			got.Memory[1][corev1.ResourceMemory] != 4<<30):
			t.Errorf("%s: pods are given %v", tt.name, got.Memory)
		case tt.name == "two lists" && (got.Memory != nil || got.Reserved[corev1.ResourceMemory] != 2<<30):
			t.Errorf("%s: %+v", tt.name, got)
		case tt.name == "single" && (got.Rule.Policy != numa.SingleNUMANode || !got.Rule.PodScope || !got.Rule.Closest):
			t.Errorf("%s: %+v", tt.name, got.Rule)
		}
	}
	if _, err := (KubeletOptions{MemoryPolicy: MemoryPolicyStatic, ReservedMemory: []string{""}}).placingOn(
		memory.Banks{Nodes: 1}); err == nil || !strings.Contains(err.Error(), "does not say how much memory") {
		t.Errorf("a kernel that knows no nodes: %v", err)
	}
}
