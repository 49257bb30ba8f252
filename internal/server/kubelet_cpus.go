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
	"github.com/wherryproject/wherry/internal/node/cpus/pin"
)

// Options of the policy static, by the kubelet's names.
const (
	fullPCPUsOnly        = "full-pcpus-only"
	strictCPUReservation = "strict-cpu-reservation"
)

// cpus reads how CPUs are given out (PL-33). Whether the reserved ones are the machine's is seen when the agent begins.
func (k KubeletOptions) cpus() (node.CPUManager, error) {
	var out node.CPUManager
	var err error
	if out.Reserved, err = pin.Parse(k.ReservedCPUs); err != nil {
		return out, fmt.Errorf("--reserved-cpus: %w", err)
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
