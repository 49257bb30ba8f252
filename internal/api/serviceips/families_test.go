// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// KEP-563: what a service gets where nothing is said of families, and what is refused where services have one.
func TestFamilies(t *testing.T) {
	selector := map[string]string{"app": "web"}
	policy := func(p corev1.IPFamilyPolicy) *corev1.IPFamilyPolicy { return &p }
	const single, prefer, require = corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack,
		corev1.IPFamilyPolicyRequireDualStack
	both := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	four, six := both[:1], both[1:]
	for _, tt := range []struct {
		name   string
		spec   corev1.ServiceSpec
		own    corev1.IPFamily
		policy corev1.IPFamilyPolicy
		want   []corev1.IPFamily
		says   string // each of them, separated by |; empty: it is taken
	}{
		{"nothing said", corev1.ServiceSpec{Selector: selector}, corev1.IPv4Protocol, single, four, ""},
		{"nothing said, IPv6", corev1.ServiceSpec{Selector: selector}, corev1.IPv6Protocol, single, six, ""},
		{"rather two", corev1.ServiceSpec{Selector: selector, IPFamilyPolicy: policy(prefer)}, corev1.IPv4Protocol, prefer, four, ""},
		{"two", corev1.ServiceSpec{Selector: selector, IPFamilyPolicy: policy(require)}, corev1.IPv4Protocol, require, nil,
			"spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services"},
		{"the other", corev1.ServiceSpec{Selector: selector, IPFamilies: six}, corev1.IPv4Protocol, single, nil,
			"spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"},
		{"rather two, both named", corev1.ServiceSpec{Selector: selector, IPFamilyPolicy: policy(prefer), IPFamilies: both},
			corev1.IPv4Protocol, prefer, nil, "spec.ipFamilies[1]: Invalid value: \"IPv6\": not configured"},
		{"both named, one wanted", corev1.ServiceSpec{Selector: selector, IPFamilies: both}, corev1.IPv4Protocol, single, nil,
			"spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families" +
				"|spec.ipFamilies[1]"},
		{"an address of the other", corev1.ServiceSpec{Selector: selector, ClusterIP: "fd00::1", ClusterIPs: []string{"fd00::1"}},
			corev1.IPv4Protocol, single, nil, "spec.clusterIPs[0]: Invalid value: \"fd00::1\": IPv6 is not configured"},
		{"two addresses", corev1.ServiceSpec{Selector: selector, ClusterIP: "10.1.0.9", ClusterIPs: []string{"10.1.0.9", "fd00::1"}},
			corev1.IPv4Protocol, single, nil, "when multiple cluster IPs|spec.clusterIPs[1]: Invalid value: \"fd00::1\""},
		{"without address", corev1.ServiceSpec{Selector: selector, ClusterIP: "None", ClusterIPs: []string{"None"}}, corev1.IPv4Protocol,
			single, four, ""},
		{"without address and selector", corev1.ServiceSpec{ClusterIP: "None"}, corev1.IPv4Protocol, require, both, ""},
		{"without address and selector, the other first", corev1.ServiceSpec{ClusterIP: "None", IPFamilies: six}, corev1.IPv4Protocol,
			require, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}, ""},
		{"without address and selector, one wanted", corev1.ServiceSpec{ClusterIP: "None", IPFamilyPolicy: policy(single)},
			corev1.IPv4Protocol, single, four, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := fillFamilies(&tt.spec, tt.own)
			if got := ptr.Deref(tt.spec.IPFamilyPolicy, ""); got != tt.policy {
				t.Errorf("policy %s, want %s", got, tt.policy)
			}
			if tt.says == "" {
				if len(all) > 0 || len(tt.spec.IPFamilies) != len(tt.want) {
					t.Fatalf("families %v (%v), want %v", tt.spec.IPFamilies, all, tt.want)
				}
				for i, f := range tt.want {
					if tt.spec.IPFamilies[i] != f {
						t.Errorf("families %v, want %v", tt.spec.IPFamilies, tt.want)
					}
				}
				return
			}
			said := all.ToAggregate()
			for _, words := range strings.Split(tt.says, "|") {
				if said == nil || !strings.Contains(said.Error(), words) {
					t.Errorf("it says %v, want %q", said, words)
				}
			}
			if n := strings.Count(tt.says, "|") + 1; len(all) != n {
				t.Errorf("it says %v: %d things, want %d", all, len(all), n)
			}
		})
	}
}
