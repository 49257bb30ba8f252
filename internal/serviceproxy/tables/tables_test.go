// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/netfilter"
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// byAddr lets go-cmp compare addresses.
func byAddr() cmp.Option { return cmp.Comparer(func(a, b netip.Addr) bool { return a == b }) }

func facts() decide.Facts {
	return decide.Facts{Node: "n", Pods: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24"),
		netip.MustParsePrefix("fd00:1::/64")}}
}

// world makes services at random: of all types, families, policies, with ends that are ready, end, or are elsewhere.
func world(r *rand.Rand) []*decide.Part {
	var parts []*decide.Part
	pick := func(n int) bool { return r.IntN(n) == 0 }
	for i := range 12 {
		if pick(3) {
			continue
		}
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s%d", i)}}
		s.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", i+2)
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		if pick(2) {
			s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, fmt.Sprintf("fd00:2::%x", i+2))
		}
		s.Spec.Type = corev1.ServiceTypeClusterIP
		if pick(2) {
			s.Spec.Type = corev1.ServiceTypeLoadBalancer
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("192.0.2.%d", r.IntN(4))}}
			if pick(2) {
				s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24", "203.0.113.0/24"}
			}
		}
		if pick(3) {
			s.Spec.ExternalIPs = []string{fmt.Sprintf("192.0.2.%d", 100+r.IntN(3))}
		}
		if pick(3) {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
		if pick(3) {
			s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
		}
		if pick(2) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}
		four := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		six := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv6}
		for n := range 1 + r.IntN(3) {
			port := corev1.ServicePort{Name: fmt.Sprint("p", n), Port: int32(80 + n), Protocol: []corev1.Protocol{
				corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}[r.IntN(3)]}
			if s.Spec.Type == corev1.ServiceTypeLoadBalancer && pick(2) {
				port.NodePort = int32(30000 + r.IntN(20))
			}
			s.Spec.Ports = append(s.Spec.Ports, port)
			p := discoveryv1.EndpointPort{Name: &port.Name, Port: ptr.To(int32(8080 + n)), Protocol: &port.Protocol}
			four.Ports, six.Ports = append(four.Ports, p), append(six.Ports, p)
		}
		for range r.IntN(5) {
			e := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.%d.%d", r.IntN(2), r.IntN(250))}}
			e.Conditions.Ready, e.Conditions.Serving = ptr.To(pick(2)), ptr.To(pick(2))
			four.Endpoints = append(four.Endpoints, e)
			e.Addresses = []string{fmt.Sprintf("fd00:%d::%x", 1+r.IntN(2), r.IntN(250))}
			six.Endpoints = append(six.Endpoints, e)
		}
		parts = append(parts, decide.Of(facts(), s, []*discoveryv1.EndpointSlice{four, six}))
	}
	return parts
}

// TestDifference: WL-12, RS-09: from any state to any other by difference, and the kernel has what was decided, also if
// what it had was known only from looking at it, and if somebody else has taken something away.
func TestDifference(t *testing.T) {
	needRoot(t)
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	h := Host{Bridge: "br0"}
	have := State{}
	for round := range 60 {
		want := decide.Merge(world(r))
		if round%20 == 19 {
			want = decide.Merge(nil)
		}
		if round%3 == 1 {
			h.damage(t, r)
		}
		if round%3 > 0 { // as after a start, or after somebody's change
			var err error
			if have, err = h.Read(); err != nil {
				t.Fatal(err)
			}
		}
		now, change, err := h.Make(have, want)
		if err != nil {
			t.Fatalf("round %d: %v\n%+v", round, err, change)
		}
		seen, err := h.Read()
		if err != nil {
			t.Fatal(err)
		}
		if want.Empty() {
			if seen.Table {
				t.Fatalf("round %d: an empty table is left", round)
			}
			have = now
			continue
		}
		if diff := cmp.Diff(h.want(want), seen, byAddr()); diff != "" {
			t.Fatalf("round %d: (-wanted +there)\n%s", round, diff)
		}
		if again, change, err := h.Make(seen, want); err != nil || !change.Empty() {
			t.Fatalf("round %d: a second time it changes %+v, %v, %v", round, change, again, err)
		}
		have = now
	}
}

// damage takes something away, as another program might.
func (h Host) damage(t *testing.T, r *rand.Rand) {
	t.Helper()
	o, err := h.open()
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	state, err := h.Read()
	if err != nil || !state.Table {
		return
	}
	switch r.IntN(3) {
	case 0:
		o.conn.DelTable(o.t)
	case 1:
		for name := range state.Chains {
			o.conn.FlushChain(&nftables.Chain{Name: name, Table: o.t})
			break
		}
	case 2:
		for _, name := range []string{"prerouting", "cluster"} {
			o.conn.FlushChain(&nftables.Chain{Name: name, Table: o.t})
		}
		for _, f := range netfilter.Families() {
			o.conn.FlushSet(o.named("cluster", f))
		}
	}
	if err := o.conn.Flush(); err != nil {
		t.Fatal(err)
	}
}
