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
)

// cpus reads how this machine's CPUs are given out (PL-33).
func (k KubeletOptions) cpus() (node.CPUManager, error) {
	machine, err := cpus.ReadMachine(cpus.SystemFolder)
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
	for _, name := range slices.Sorted(maps.Keys(k.CPUOptions)) {
		on, err := strconv.ParseBool(k.CPUOptions[name])
		if err != nil {
			return out, fmt.Errorf("--cpu-manager-policy-options: %s=%q must be true or false", name,
				k.CPUOptions[name])
		}
		switch name {
		case fullPCPUsOnly:
			out.Options.FullPCPUsOnly = on
		case strictCPUReservation:
			out.Options.StrictCPUReservation = on
		default:
			if on {
				return out, fmt.Errorf("--cpu-manager-policy-options: %q is not supported: %s are", name,
					strings.Join([]string{fullPCPUsOnly, strictCPUReservation}, " and "))
			}
		}
	}
	return out, nil
}
