// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
)

// PL-33: how CPUs are given out, in the kubelet's words.
func TestCPUOptions(t *testing.T) {
	machine := pin.Machine{{ID: 0}, {ID: 1, Core: 1}, {ID: 2, Core: 2}, {ID: 3, Core: 3}, {ID: 4, Core: 4}}
	for _, tt := range []struct {
		name string
		k    KubeletOptions
		says string // "": it is taken
	}{
		{"none", KubeletOptions{CPUPolicy: CPUPolicyNone}, ""},
		{"none said", KubeletOptions{}, ""},
		{"reserved alone", KubeletOptions{ReservedCPUs: "0-1,4"}, ""},
		{"static", KubeletOptions{CPUPolicy: CPUPolicyStatic, ReservedCPUs: "0"}, ""},
		{"options", KubeletOptions{CPUPolicy: CPUPolicyStatic, ReservedCPUs: "0",
			CPUOptions: map[string]string{fullPCPUsOnly: "true", strictCPUReservation: "false",
				"spin": "false"}}, ""},
		{"another policy", KubeletOptions{CPUPolicy: "dynamic"},
			`--cpu-manager-policy: "dynamic" must be none or static`},
		{"nothing reserved", KubeletOptions{CPUPolicy: CPUPolicyStatic},
			"--cpu-manager-policy static: set --reserved-cpus, for example 0"},
		{"no list", KubeletOptions{ReservedCPUs: "all"}, `--reserved-cpus: "all" is not the number of a CPU`},
		{"too long a list", KubeletOptions{ReservedCPUs: "0-99999999"},
			`--reserved-cpus: "99999999" is not the number of a CPU`},
		{"not the machine's", KubeletOptions{ReservedCPUs: "7"}, "--reserved-cpus: 7 must be some of this machine's CPUs, which are 0-4, and not all"},
		{"all of them", KubeletOptions{ReservedCPUs: "0-4"}, "--reserved-cpus: 0-4 must be some of this machine's"},
		{"options of none", KubeletOptions{CPUOptions: map[string]string{fullPCPUsOnly: "true"}},
			"--cpu-manager-policy-options: with --cpu-manager-policy none there are none"},
		{"no such option", KubeletOptions{CPUPolicy: CPUPolicyStatic, ReservedCPUs: "0",
			CPUOptions: map[string]string{"spin": "true"}},
			`--cpu-manager-policy-options: "spin" is not supported: align-by-socket, distribute-cpus-across-cores, ` +
				`distribute-cpus-across-numa, full-pcpus-only, prefer-align-cpus-by-uncorecache, strict-cpu-reservation are`},
		{"options that are together", KubeletOptions{CPUPolicy: CPUPolicyStatic, ReservedCPUs: "0",
			CPUOptions: map[string]string{acrossNUMA: "true", fullPCPUsOnly: "true", alignBySocket: "true"}}, ""},
		{"options that are not", KubeletOptions{CPUPolicy: CPUPolicyStatic, ReservedCPUs: "0",
			CPUOptions: map[string]string{acrossCores: "true", fullPCPUsOnly: "true"}},
			"--cpu-manager-policy-options: distribute-cpus-across-cores and full-pcpus-only exclude each other"},
		{"caches and nodes", KubeletOptions{CPUPolicy: CPUPolicyStatic, ReservedCPUs: "0",
			CPUOptions: map[string]string{alignByCache: "true", acrossNUMA: "true"}},
			"--cpu-manager-policy-options: prefer-align-cpus-by-uncorecache and distribute-cpus-across-numa exclude each other"},
		{"no truth", KubeletOptions{CPUPolicy: CPUPolicyStatic, ReservedCPUs: "0",
			CPUOptions: map[string]string{fullPCPUsOnly: "yes"}},
			`--cpu-manager-policy-options: full-pcpus-only="yes" must be true or false`},
	} {
		got, err := tt.k.cpusOf(machine)
		switch {
		case tt.says == "" && err != nil, tt.says != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.says)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		case tt.name == "options" && (!got.Static || !got.Options.FullPCPUsOnly || got.Options.StrictCPUReservation):
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}
