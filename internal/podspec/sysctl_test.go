// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// PL-20: a sysctl that is not safe is let in only where the node allows it, and one of the machine's nowhere.
func TestForbiddenSysctl(t *testing.T) {
	for _, tc := range []struct {
		names   string
		allowed []string
		want    string // in the message; empty: it is let in
	}{
		{"", nil, ""},
		{"net.ipv4.ip_unprivileged_port_start kernel.shm_rmid_forced net/ipv4/tcp_rmem", nil, ""},
		{"net.ipv4.tcp_notsent_lowat", nil, ""},
		{"kernel.msgmax", nil, `forbidden sysctl: "kernel.msgmax" not allowlisted: it is unsafe`},
		{"net.ipv4.tcp_syncookies kernel/msgmax", nil, `"kernel/msgmax" not allowlisted`},
		{"net.core.somaxconn", nil, "--allowed-unsafe-sysctls"},
		{"net.ipv4.tcp_syncookies.x", nil, "not allowlisted"},
		{"vm.swappiness", []string{"net.*"}, `forbidden sysctl: "vm.swappiness" not allowlisted: it belongs to the machine`},
		{"kernel.msgmax", []string{"kernel.msg*"}, ""},
		{"kernel/msgmax", []string{"kernel/msg*"}, ""},
		{"kernel.msgmax", []string{"kernel.msgmax"}, ""},
		{"kernel.msgmaxx", []string{"kernel.msgmax"}, "unsafe"},
		{"kernel.shmmax", []string{"kernel.msg*", "net.core.*"}, "unsafe"},
		{"net.core.somaxconn", []string{"kernel.msg*", "net.core.*"}, ""},
		{"fs.mqueue.msg_max kernel.sem", []string{"fs.mqueue.*", "kernel.sem"}, ""},
		{"kernel.domainname", []string{"kernel.domainname"}, ""},
		{"kernel.domainname", nil, "unsafe"},
		{"user.max_user_namespaces", []string{"user.*"}, `"user.max_user_namespaces" not allowed with host User enabled`},
		{"user.max_user_namespaces", nil, "unsafe"},
	} {
		allowed, err := ParseSysctlPatterns(tc.allowed)
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		for _, n := range strings.Fields(tc.names) {
			if pod.Spec.SecurityContext == nil {
				pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
			}
			pod.Spec.SecurityContext.Sysctls = append(pod.Spec.SecurityContext.Sysctls, corev1.Sysctl{Name: n, Value: "1"})
		}
		if got := ForbiddenSysctl(pod, allowed); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s, allowed %v: %q, want %q", tc.names, tc.allowed, got, tc.want)
		}
	}
	for _, name := range []string{"kernel.domainname", "kernel/domainname"} {
		machines := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true, SecurityContext: &corev1.PodSecurityContext{
			Sysctls: []corev1.Sysctl{{Name: name, Value: "x"}}}}}
		if got := ForbiddenSysctl(machines, SysctlPatterns{"kernel.domainname"}); !strings.Contains(got, `"`+name+`" not allowed with host UTS enabled`) {
			t.Errorf("%s in a pod with the machine's network: %q", name, got)
		}
	}
	own, allowed := &corev1.Pod{Spec: corev1.PodSpec{HostUsers: new(bool), SecurityContext: &corev1.PodSecurityContext{
		Sysctls: []corev1.Sysctl{{Name: "user/max_user_namespaces", Value: "1"}}}}}, SysctlPatterns{"user.*"}
	if got := ForbiddenSysctl(own, allowed); got != "" {
		t.Errorf("a pod with users of its own: %q", got)
	}
	if got := ForbiddenSysctl(own, nil); !strings.Contains(got, "it is unsafe") {
		t.Errorf("a pod with users of its own, on a node that allows none: %q", got)
	}
	for _, p := range []string{"", "*", "kernel.*", "vm.swappiness", "kernel.hostname", "net.*.x", "a b", "fs.*", strings.Repeat("net.", 100)} {
		if _, err := ParseSysctlPatterns([]string{p}); err == nil {
			t.Errorf("pattern %q is taken", p)
		}
	}
}
