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

	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/cpus"
	"github.com/wherryproject/wherry/internal/node/cpus/pin"
)

// Options of the policy static, by the kubelet's names.
const (
	fullPCPUsOnly        = "full-pcpus-only"
	strictCPUReservation = "strict-cpu-reservation"
	acrossNUMA           = "distribute-cpus-across-numa"
	acrossCores          = "distribute-cpus-across-cores"
	alignBySocket        = "align-by-socket"
	alignByCache         = "prefer-align-cpus-by-uncorecache"
)

// cpus reads how this machine's CPUs are given out (PL-33).
func (k KubeletOptions) cpus() (node.CPUManager, error) {
	machine, err := cpus.ReadMachine(cpus.SystemFolder, cpus.NodesFolder)
	if err != nil && (k.CPUPolicy == CPUPolicyStatic || k.ReservedCPUs != "") {
		return node.CPUManager{}, fmt.Errorf("--cpu-manager-policy, --reserved-cpus: %w", err)
	}
	return k.cpusOf(machine)
}

// cpusOf is cpus for any machine. (Pure.)
func (k KubeletOptions) cpusOf(machine pin.Machine) (node.CPUManager, error) {
	out := node.CPUManager{Machine: machine}
	var err error
	if out.Reserved, err = pin.Parse(k.ReservedCPUs); err != nil {
		return out, fmt.Errorf("--reserved-cpus: %w", err)
	}
	all := machine.All()
	if !out.Reserved.IsEmpty() && (!out.Reserved.IsSubsetOf(all) || all.IsSubsetOf(out.Reserved)) {
		return out, fmt.Errorf("--reserved-cpus: %s must be some of this machine's CPUs, which are %s, and not all",
			out.Reserved, all)
	}
	switch cmp.Or(k.CPUPolicy, CPUPolicyNone) {
	case CPUPolicyNone:
		if len(k.CPUOptions) > 0 {
			return out, fmt.Errorf("--cpu-manager-policy-options: with --cpu-manager-policy %s there are none",
				CPUPolicyNone)
		}
		return out, nil
	case CPUPolicyStatic:
		out.Static = true
	default:
		return out, fmt.Errorf("--cpu-manager-policy: %q must be %s or %s", k.CPUPolicy, CPUPolicyNone, CPUPolicyStatic)
	}
	if out.Reserved.IsEmpty() {
		return out,
			errors.New("--cpu-manager-policy static: set --reserved-cpus, for example 0: CPUs for the system and for " +
				"containers that have none to themselves")
	}
	if out.Options, err = k.cpuOptions(); err != nil {
		return out, fmt.Errorf("--cpu-manager-policy-options: %w", err)
	}
	return out, nil
}

// cpuOptions reads the options of the policy static. (Pure.)
func (k KubeletOptions) cpuOptions() (out pin.Options, err error) {
	fields := map[string]*bool{fullPCPUsOnly: &out.FullPCPUsOnly, strictCPUReservation: &out.StrictCPUReservation,
		acrossNUMA: &out.DistributeCPUsAcrossNUMA, acrossCores: &out.DistributeCPUsAcrossCores,
		alignBySocket: &out.AlignBySocket, alignByCache: &out.PreferAlignByUncoreCache}
	for _, name := range slices.Sorted(maps.Keys(k.CPUOptions)) {
		on, err := strconv.ParseBool(k.CPUOptions[name])
		if err != nil {
			return out, fmt.Errorf("%s=%q must be true or false", name, k.CPUOptions[name])
		}
		field, known := fields[name]
		if !known && on {
			return out, fmt.Errorf("%q is not supported: %s are", name,
				strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		if known {
			*field = on
		}
	}
	for _, pair := range [][2]string{{acrossCores, fullPCPUsOnly}, {acrossCores, acrossNUMA},
		{alignByCache, acrossNUMA},
		{alignByCache, acrossCores}} {
		if *fields[pair[0]] && *fields[pair[1]] {
			return out, fmt.Errorf("%s and %s exclude each other: leave one of them out", pair[0], pair[1])
		}
	}
	return out, nil
}
