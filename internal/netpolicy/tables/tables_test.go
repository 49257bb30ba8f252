// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/nftables"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/netpolicy/decide"
)

func label(n int) map[string]string { return map[string]string{"app": fmt.Sprint(n)} }

// policyFor selects pods of one label and lets those of others come to it, on ports by number, range and name.
func policyFor(name string, selects int, peers ...int) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
	p.Spec.PodSelector = metav1.LabelSelector{MatchLabels: label(selects)}
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	var from []networkingv1.NetworkPolicyPeer
	for _, n := range peers {
		from = append(from, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: label(n)}})
	}
	from = append(from, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.8/29"}}})
	ports := []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(80))}, {Port: ptr.To(intstr.FromString("web"))},
		{Port: ptr.To(intstr.FromInt32(90)), EndPort: ptr.To(int32(99)), Protocol: ptr.To(corev1.ProtocolUDP)}}
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: from, Ports: ports[:1+selects%3]}}
	p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: from[:1]}}
	return p
}

func podFor(n, app int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("p", n), UID: types.UID(fmt.Sprint(n)), Labels: label(app)},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}}}},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.77.%d.%d", n/250, n%250+2)}, {IP: fmt.Sprintf("fd00:77::%x", n+2)}}}}
}

// TestDifference: WL-19, RS-09: from any state to any other by difference, and the kernel has what was decided, also if what it had
// was known only from looking at it, and if somebody else has taken something away.
func TestDifference(t *testing.T) {
	b := newBench(t, "10.77.0.0/24", "fd00:77::/64")
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range 60 {
		switch r.IntN(4) {
		case 0:
			b.world.DropPolicy("n", fmt.Sprint("policy", r.IntN(3)))
		case 1:
			if err := b.world.SetPolicy(policyFor(fmt.Sprint("policy", r.IntN(3)), r.IntN(3), r.IntN(3), r.IntN(3))); err != nil {
				t.Fatal(err)
			}
		case 2:
			b.world.DropPod("n", fmt.Sprint("p", r.IntN(5)))
		default:
			b.world.SetPod(podFor(r.IntN(5), r.IntN(3)))
		}
		touched := b.world.Touched()
		if round%3 > 0 { // as after a start, or after somebody's change
			if round%3 == 1 {
				b.damage(r)
			}
			state, err := b.host.Read()
			if err != nil {
				t.Fatal(err)
			}
			b.have, touched = state, nil
		}
		want := b.world.Tables()
		now, _, err := b.host.Make(b.have, want, touched)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		b.have = now
		seen, err := b.host.Read()
		if err != nil {
			t.Fatal(err)
		}
		if want.Sets == nil {
			if seen.Table {
				t.Fatalf("round %d: an empty table is left", round)
			}
			continue
		}
		if !reflect.DeepEqual(seen.There, want.There()) || !reflect.DeepEqual(seen.Base, now.Base) {
			t.Fatalf("round %d: the kernel has\n%+v\nwant\n%+v", round, seen, now)
		}
		if _, change, err := b.host.Make(seen, want, nil); err != nil || !change.Empty() {
			t.Fatalf("round %d: a second time it changes %+v, %v", round, change, err)
		}
	}
}

// damage takes something away, as another program might.
func (b *bench) damage(r *rand.Rand) {
	b.t.Helper()
	state, err := b.host.Read()
	if err != nil || !state.Table {
		return
	}
	o, err := b.host.open()
	if err != nil {
		b.t.Fatal(err)
	}
	defer o.close()
	switch r.IntN(4) {
	case 0:
		o.conn.DelTable(o.t)
	case 1:
		o.conn.DelTable(o.l2)
	case 2:
		o.conn.FlushChain(&nftables.Chain{Name: "out", Table: o.t})
		for _, f := range b.host.families() {
			o.conn.FlushSet(o.set(decide.SetIn, f))
		}
	case 3:
		for name := range state.Chains {
			o.conn.FlushChain(&nftables.Chain{Name: name, Table: o.t})
		}
	}
	if err := o.conn.Flush(); err != nil {
		b.t.Fatal(err)
	}
}

// BenchmarkChange measures one pod that comes and goes, decided and made in the kernel, beside what there is.
func BenchmarkChange(b *testing.B) {
	for _, c := range []struct{ policies, pods int }{{10, 10}, {1000, 10}, {1000, 100}, {1000, 500}} {
		b.Run(fmt.Sprintf("policies=%d/pods=%d", c.policies, c.pods), func(b *testing.B) {
			m := newBench(b, "10.77.0.0/16")
			for i := range c.policies {
				if err := m.world.SetPolicy(policyFor(fmt.Sprint("policy", i), i%50, (i+1)%50, (i+7)%50)); err != nil {
					b.Fatal(err)
				}
			}
			for i := range c.pods {
				m.world.SetPod(podFor(i, i%50))
			}
			began := time.Now()
			m.enforce()
			b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/start")
			for i := range b.N {
				if i%2 == 0 {
					m.world.SetPod(podFor(5000, 3))
				} else {
					m.world.DropPod("n", "p5000")
				}
				m.enforce()
			}
		})
	}
}
