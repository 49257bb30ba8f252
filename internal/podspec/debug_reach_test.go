// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// TestProfileNeeded proves RS-11: a debug container counts as what it is given, however it is asked for.
func TestProfileNeeded(t *testing.T) {
	add := func(names ...corev1.Capability) *corev1.SecurityContext {
		return &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: names}}
	}
	plain, onNode := &corev1.Pod{}, &corev1.Pod{Spec: corev1.PodSpec{HostPID: true}}
	unmasked := corev1.UnmaskedProcMount
	for name, row := range map[string]struct {
		pod  *corev1.Pod
		sc   *corev1.SecurityContext
		want string
	}{
		"nothing":                              {plain, nil, ""},
		"an empty one":                         {plain, &corev1.SecurityContext{}, ""},
		"tracing":                              {plain, add("SYS_PTRACE"), ""},
		"with the prefix":                      {plain, add("CAP_SYS_PTRACE"), ""},
		"tracing the node's processes":         {onNode, add("SYS_PTRACE"), "sysadmin"},
		"nothing among the node's processes":   {onNode, nil, ""},
		"what every container has":             {plain, add("CHOWN", "NET_RAW", "KILL"), ""},
		"the network":                          {plain, add("NET_ADMIN", "NET_RAW"), "netadmin"},
		"the network in lower case":            {plain, add("cap_net_admin"), "netadmin"},
		"the network and more":                 {plain, add("NET_ADMIN", "SYS_ADMIN"), "sysadmin"},
		"one capability":                       {plain, add("SYS_MODULE"), "sysadmin"},
		"all of them":                          {plain, add("ALL"), "sysadmin"},
		"a capability that nobody knows":       {plain, add("CAP_TO_COME"), "sysadmin"},
		"privileged":                           {plain, &corev1.SecurityContext{Privileged: new(true)}, "sysadmin"},
		"not privileged":                       {plain, &corev1.SecurityContext{Privileged: new(false)}, ""},
		"root":                                 {plain, &corev1.SecurityContext{RunAsUser: new(int64(0))}, ""},
		"no seccomp":                           {plain, &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}, "sysadmin"},
		"seccomp of the runtime":               {plain, &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}, ""},
		"no AppArmor":                          {plain, &corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}, "sysadmin"},
		"all of /proc":                         {plain, &corev1.SecurityContext{ProcMount: &unmasked}, "sysadmin"},
		"an SELinux type of the baseline":      {plain, &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "container_t"}}, ""},
		"another SELinux type":                 {plain, &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}, "sysadmin"},
		"capabilities taken away, not granted": {plain, &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}, ""},
	} {
		c := &corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{SecurityContext: row.sc}}
		if got := ProfileNeeded(row.pod, c); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
	for _, profile := range debugask.Profiles() {
		c, err := NewDebugContainer(plain, DebugContainer{Profile: profile})
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if slices.Contains(PrivilegedProfiles(), profile) {
			want = profile
		}
		if got := ProfileNeeded(plain, &c); got != want {
			t.Errorf("profile %s amounts to %q, want %q", profile, got, want)
		}
	}
}
