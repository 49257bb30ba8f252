// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/cpus"
	"github.com/wherryproject/wherry/internal/node/memory"
	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/node/numa/bank"
	"github.com/wherryproject/wherry/internal/quantities"
)

// Policies of the memory manager and scopes of the topology manager, in the kubelet's words.
const (
	MemoryPolicyNone   = "None"
	MemoryPolicyStatic = "Static"
	ScopeContainer     = "container"
	ScopePod           = "pod"
)

// Options of the topology manager, by the kubelet's names.
const (
	preferClosest = "prefer-closest-numa-nodes"
	maxNUMANodes  = "max-allowable-numa-nodes"
)

// How many NUMA nodes a machine may have whose nodes are chosen from: all sets of them are looked at.
const (
	defaultNUMANodes = 8
	mostNUMANodes    = 12
)

// placing reads how what pods ask for is brought together on this machine's NUMA nodes (PL-33).
func (k KubeletOptions) placing() (node.Placing, error) {
	banks, err := memory.ReadBanks(cpus.NodesFolder)
	if err != nil {
		if k.placesNothing() {
			return node.Placing{}, nil
		}
		return node.Placing{}, fmt.Errorf("--memory-manager-policy, --topology-manager-policy, --reserved-memory: %w",
			err)
	}
	return k.placingOn(banks)
}

// placesNothing reports whether all is as it is by default.
func (k KubeletOptions) placesNothing() bool {
	return cmp.Or(k.MemoryPolicy, MemoryPolicyNone) == MemoryPolicyNone && len(k.ReservedMemory) == 0 &&
		cmp.Or(k.TopologyPolicy, string(numa.None)) == string(numa.None)
}

// placingOn is placing for any machine. (Pure.)
func (k KubeletOptions) placingOn(banks memory.Banks) (node.Placing, error) {
	out := node.Placing{Rule: numa.Rule{Nodes: banks.Nodes, Distances: banks.Distances}}
	if err := k.topology(&out.Rule); err != nil {
		return out, err
	}
	reserved, err := parseReservedMemory(k.ReservedMemory)
	if err != nil {
		return out, fmt.Errorf("--reserved-memory: %w", err)
	}
	left, err := withoutReserved(banks.Of, reserved)
	if err != nil {
		return out, fmt.Errorf("--reserved-memory: %w", err)
	}
	for _, amounts := range reserved {
		for name, n := range amounts {
			if out.Reserved == nil {
				out.Reserved = bank.Amounts{}
			}
			out.Reserved[name] += n
		}
	}
	switch cmp.Or(k.MemoryPolicy, MemoryPolicyNone) {
	case MemoryPolicyNone:
		return out, nil
	case MemoryPolicyStatic:
	default:
		return out, fmt.Errorf("--memory-manager-policy: %q must be %s or %s", k.MemoryPolicy, MemoryPolicyNone,
			MemoryPolicyStatic)
	}
	if len(banks.Of) == 0 {
		return out,
			errors.New("--memory-manager-policy Static: the kernel does not say how much memory each NUMA node has")
	}
	if out.Reserved[corev1.ResourceMemory] == 0 {
		return out,
			errors.New("--memory-manager-policy Static: set --reserved-memory, for example 0:memory=1Gi: memory " +
				"for the system and for pods that are not guaranteed")
	}
	if n := banks.Nodes.Count(); n > mostNUMANodes {
		return out, fmt.Errorf("--memory-manager-policy Static: this machine has %d NUMA nodes, it is for %d or less",
			n, mostNUMANodes)
	}
	out.Memory = left
	return out, nil
}

// topology reads how things are brought together. (Pure.)
func (k KubeletOptions) topology(r *numa.Rule) error {
	r.Policy = numa.Policy(cmp.Or(k.TopologyPolicy, string(numa.None)))
	if !slices.Contains(numa.Policies(), r.Policy) {
		return fmt.Errorf("--topology-manager-policy: %q must be one of %v", k.TopologyPolicy, numa.Policies())
	}
	switch cmp.Or(k.TopologyScope, ScopeContainer) {
	case ScopeContainer:
	case ScopePod:
		r.PodScope = true
	default:
		return fmt.Errorf("--topology-manager-scope: %q must be %s or %s", k.TopologyScope, ScopeContainer, ScopePod)
	}
	if !r.On() && len(k.TopologyOptions) > 0 {
		return fmt.Errorf("--topology-manager-policy-options: with --topology-manager-policy %s there are none",
			numa.None)
	}
	most := defaultNUMANodes
	for _, name := range slices.Sorted(maps.Keys(k.TopologyOptions)) {
		value, err := k.TopologyOptions[name], error(nil)
		switch name {
		case preferClosest:
			if r.Closest, err = strconv.ParseBool(value); err != nil {
				return fmt.Errorf("--topology-manager-policy-options: %s=%q must be true or false", name, value)
			}
		case maxNUMANodes:
			if most, err = strconv.Atoi(value); err != nil || most < defaultNUMANodes || most > mostNUMANodes {
				return fmt.Errorf("--topology-manager-policy-options: %s=%q must be %d to %d", name, value,
					defaultNUMANodes, mostNUMANodes)
			}
		default:
			return fmt.Errorf("--topology-manager-policy-options: %q is not supported: %s and %s are", name,
				preferClosest, maxNUMANodes)
		}
	}
	if n := r.Nodes.Count(); r.On() && n > most {
		return fmt.Errorf("--topology-manager-policy %s: this machine has %d NUMA nodes, more than %s allows (%d)",
			r.Policy, n, maxNUMANodes, most)
	}
	if r.Policy == numa.SingleNUMANode && k.CPUOptions[alignBySocket] == "true" {
		return fmt.Errorf("--topology-manager-policy %s: the CPU manager's option %s is not for it, as a socket may have "+
			"several NUMA nodes: leave one of them out", r.Policy, alignBySocket)
	}
	return nil
}

// parseReservedMemory reads lists of NODE:RESOURCE=QUANTITY,..., several with semicolons between them. (Pure.)
func parseReservedMemory(lists []string) (map[int]bank.Amounts, error) {
	out := map[int]bank.Amounts{}
	for _, one := range lists {
		for part := range strings.SplitSeq(one, ";") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			number, limits, ok := strings.Cut(part, ":")
			at, err := strconv.Atoi(number)
			if !ok || err != nil || at < 0 {
				return nil, fmt.Errorf("%q must be a NUMA node and what is reserved of it, for example 0:memory=1Gi",
					part)
			}
			if out[at] != nil {
				return nil, fmt.Errorf("NUMA node %d is named twice", at)
			}
			if out[at], err = parseAmounts(limits); err != nil {
				return nil, fmt.Errorf("NUMA node %d: %w", at, err)
			}
		}
	}
	return out, nil
}

func parseAmounts(list string) (bank.Amounts, error) {
	out := bank.Amounts{}
	for pair := range strings.SplitSeq(list, ",") {
		name, amount, _ := strings.Cut(pair, "=")
		if name != string(corev1.ResourceMemory) && !strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
			return nil, fmt.Errorf("%q must be memory or hugepages-SIZE, with =AMOUNT", pair)
		}
		q, err := quantities.Parse(amount)
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("%q is not an amount of %s, such as 1Gi", amount, name)
		}
		if _, twice := out[corev1.ResourceName(name)]; twice {
			return nil, fmt.Errorf("%s is named twice", name)
		}
		out[corev1.ResourceName(name)] = q.Value()
	}
	return out, nil
}

// withoutReserved is what is left of a machine's memory for pods. (Pure.)
func withoutReserved(all bank.Machine, reserved map[int]bank.Amounts) (bank.Machine, error) {
	out := bank.Machine{}
	for n, amounts := range all {
		out[n] = maps.Clone(amounts)
	}
	for _, n := range slices.Sorted(maps.Keys(reserved)) {
		if out[n] == nil {
			return nil, fmt.Errorf("this machine has no memory in NUMA node %d; it has %s", n, all.Nodes())
		}
		for name, bytes := range reserved[n] {
			if has, known := all[n][name]; !known || bytes > has {
				return nil, fmt.Errorf("NUMA node %d has not %s, but %s", n, bank.Amounts{name: bytes},
					bank.Amounts{name: has})
			}
			out[n][name] -= bytes
		}
	}
	return out, nil
}
