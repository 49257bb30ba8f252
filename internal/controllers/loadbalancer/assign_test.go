// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// balanced is a service of an age with ports; the address that it has, if any.
func balanced(name string, age int, has string, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(1000-age), 0))},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: p, Protocol: corev1.ProtocolTCP})
	}
	if has != "" {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: has}}
	}
	return s
}

func with(s *corev1.Service, changes ...func(*corev1.Service)) *corev1.Service {
	for _, change := range changes {
		change(s)
	}
	return s
}

// TestReleased: WL-09: a service lets go of its finalizer when it is deleted, of another type, or of a class by now, unless
// it is another's. Whether balancing or not, what we have written is ours.
func TestReleased(t *testing.T) {
	marked := func(change ...func(*corev1.Service)) *corev1.Service {
		s := with(balanced("a", 1, "192.0.2.1", 80), func(s *corev1.Service) { s.Finalizers = []string{"example.com/other", Finalizer} })
		for _, c := range change {
			c(s)
		}
		return s
	}
	deleted := func(s *corev1.Service) { s.DeletionTimestamp = ptr.To(metav1.Now()) }
	plain := func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }
	others := func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("x/y") }
	by := func(who string) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: who, Subresource: "status",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{".":{},"v:\"service.kubernetes.io/load-balancer-cleanup\"":{}}}}`)}}
		}
	}
	ours := by("wherry-load-balancer")
	for _, c := range []struct {
		name    string
		s       *corev1.Service
		on, off int // how many are released while addresses are given, and while none are
	}{
		{"in use", marked(), 0, 0},
		{"in use, ours", marked(ours), 0, 0},
		{"deleted", marked(deleted), 1, 0},
		{"deleted, ours", marked(deleted, ours), 1, 1},
		{"deleted, a cloud's", marked(deleted, by("cloud-controller-manager")), 1, 0},
		{"of another type", marked(plain), 1, 0},
		{"of another type, ours", marked(plain, ours), 1, 1},
		{"another's", marked(others), 0, 0},
		{"another's, deleted", marked(others, deleted), 0, 0},
		{"another's by now", marked(others, ours), 1, 1},
		{"another's by now, deleted", marked(others, deleted, ours), 1, 1},
		{"without it", with(balanced("a", 1, "", 80), deleted, ours), 0, 0},
	} {
		for balancing, want := range map[bool]int{true: c.on, false: c.off} {
			if got := Released([]*corev1.Service{c.s}, balancing); len(got) != want {
				t.Errorf("%s, balancing %t: %d are released, want %d", c.name, balancing, len(got), want)
			}
		}
	}
}

// TestAssign: WL-09, WL-24: who gets which address, and what those are told who get none.
func TestAssign(t *testing.T) {
	machine := Pool{Machine: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Busy: func(at netip.AddrPort, _ corev1.Protocol) string {
		if at.Port() == 22 {
			return "sshd (pid 7) listens on 0.0.0.0:22"
		}
		return ""
	}}
	four := Pool{Ranges: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/30")}} // .1 and .2
	asks := func(ip string) func(*corev1.Service) { return func(s *corev1.Service) { s.Spec.LoadBalancerIP = ip } }
	for _, c := range []struct {
		name     string
		pool     Pool
		services []*corev1.Service
		want     string // in the order of names
	}{
		{"the machine's", machine, []*corev1.Service{balanced("a", 1, "", 80), balanced("b", 2, "", 81)}, "a 192.0.2.1; b 192.0.2.1"},
		{"the older one has the port", machine, []*corev1.Service{balanced("a", 1, "", 80), balanced("b", 2, "", 80)},
			"a: port 80/TCP of this machine's address 192.0.2.1 belongs to service ns/b; b 192.0.2.1"},
		{"but not from one that has it", machine, []*corev1.Service{balanced("a", 1, "192.0.2.1", 80), balanced("b", 2, "", 80)},
			"a 192.0.2.1; b: port 80/TCP of this machine's address 192.0.2.1 belongs to service ns/a"},
		{"another protocol", machine, []*corev1.Service{balanced("a", 1, "", 80), with(balanced("b", 2, "", 80), func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP })},
			"a 192.0.2.1; b 192.0.2.1"},
		{"a program has it", machine, []*corev1.Service{balanced("a", 1, "", 22)}, "a: port 22/TCP of this machine's address 192.0.2.1 is in use: sshd (pid 7)"},
		{"another's class", machine, []*corev1.Service{with(balanced("a", 1, "", 80), func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("x/y") }), balanced("b", 1, "", 80)}, "b 192.0.2.1"},
		{"no address of the family", machine, []*corev1.Service{with(balanced("a", 1, "", 80), func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} })},
			"a: the node has no IPv6 address"},
		{"the machine has another address now", machine, []*corev1.Service{balanced("a", 1, "192.0.2.77", 80)}, "a 192.0.2.1"},
		{"from a range", four, []*corev1.Service{balanced("a", 1, "", 80), balanced("b", 2, "", 80)}, "a 198.51.100.2; b 198.51.100.1"},
		{"each keeps its own", four, []*corev1.Service{balanced("a", 1, "198.51.100.1", 80), balanced("b", 2, "", 80)}, "a 198.51.100.1; b 198.51.100.2"},
		{"the range is full", four, []*corev1.Service{balanced("a", 3, "", 80), balanced("b", 2, "", 80), balanced("c", 1, "", 80)},
			"a 198.51.100.1; b 198.51.100.2; c: all addresses of --load-balancer-cidr 198.51.100.0/30 are taken"},
		{"the one that is asked for", four, []*corev1.Service{with(balanced("a", 1, "", 80), asks("198.51.100.2"))}, "a 198.51.100.2"},
		{"one outside", four, []*corev1.Service{with(balanced("a", 1, "", 80), asks("203.0.113.1"))}, "a: spec.loadBalancerIP 203.0.113.1 is not in --load-balancer-cidr"},
		{"one that is taken", four, []*corev1.Service{balanced("a", 2, "198.51.100.2", 80), with(balanced("b", 1, "", 80), asks("198.51.100.2"))},
			"a 198.51.100.2; b: spec.loadBalancerIP 198.51.100.2 belongs to service ns/a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := Assign(c.services, c.pool)
			slices.SortFunc(results, func(a, b Result) int { return strings.Compare(a.Service.Name, b.Service.Name) })
			wants := strings.Split(c.want, "; ")
			if len(results) != len(wants) {
				t.Fatalf("%d results", len(results))
			}
			for i, r := range results {
				got := r.Service.Name + ": " + r.Problem
				if r.Problem == "" {
					got = fmt.Sprintf("%s %s", r.Service.Name, r.Addrs[0])
				}
				if !strings.HasPrefix(got, wants[i]) {
					t.Errorf("got  %s\nwant %s", got, wants[i])
				}
			}
		})
	}
}
