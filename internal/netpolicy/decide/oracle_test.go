// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"
)

// objects are what a world is made of, as the API has them.
type objects struct {
	policies   map[string]*networkingv1.NetworkPolicy
	pods       map[string]*corev1.Pod
	namespaces map[string]map[string]string
}

// oracle judges as the API's documentation reads, from the objects alone, with none of the code that is tested.
func (o objects) oracle(c Connection) bool {
	from, to := o.at(c.From), o.at(c.To)
	if from != nil && from == to {
		return true
	}
	return o.side(networkingv1.PolicyTypeEgress, from, c.To, to, c) && o.side(networkingv1.PolicyTypeIngress, to, c.From, from, c)
}

func (o objects) at(a netip.Addr) *corev1.Pod {
	for _, p := range o.pods {
		if p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, ip := range p.Status.PodIPs {
			if ip.IP == a.String() {
				return p
			}
		}
	}
	return nil
}

func selected(s *metav1.LabelSelector, of map[string]string) bool {
	sel, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && sel.Matches(labels.Set(of))
}

// inside tells whether a namespace is there and selected.
func (o objects) inside(s *metav1.LabelSelector, namespace string) bool {
	of, there := o.namespaces[namespace]
	return there && selected(s, of)
}

func (o objects) side(kind networkingv1.PolicyType, of *corev1.Pod, other netip.Addr, otherPod *corev1.Pod, c Connection) bool {
	if of == nil {
		return true
	}
	isolated := false
	for _, p := range o.policies {
		if p.Namespace != of.Namespace || !selected(&p.Spec.PodSelector, of.Labels) {
			continue
		}
		applies := false
		for _, t := range p.Spec.PolicyTypes {
			applies = applies || t == kind
		}
		if len(p.Spec.PolicyTypes) == 0 {
			applies = kind == networkingv1.PolicyTypeIngress || len(p.Spec.Egress) > 0
		}
		if !applies {
			continue
		}
		isolated = true
		if kind == networkingv1.PolicyTypeIngress {
			for _, r := range p.Spec.Ingress {
				if o.peer(p.Namespace, r.From, other, otherPod) && o.port(r.Ports, c) {
					return true
				}
			}
		} else {
			for _, r := range p.Spec.Egress {
				if o.peer(p.Namespace, r.To, other, otherPod) && o.port(r.Ports, c) {
					return true
				}
			}
		}
	}
	return !isolated
}

func (o objects) peer(ns string, list []networkingv1.NetworkPolicyPeer, a netip.Addr, pod *corev1.Pod) bool {
	if len(list) == 0 {
		return true
	}
	for _, p := range list {
		if p.IPBlock != nil {
			in := within(p.IPBlock.CIDR, a)
			for _, e := range p.IPBlock.Except {
				in = in && !within(e, a)
			}
			if in {
				return true
			}
			continue
		}
		if pod == nil {
			continue
		}
		if p.NamespaceSelector == nil && pod.Namespace != ns ||
			p.NamespaceSelector != nil && !o.inside(p.NamespaceSelector, pod.Namespace) {
			continue
		}
		if p.PodSelector == nil || selected(p.PodSelector, pod.Labels) {
			return true
		}
	}
	return false
}

// within reads a CIDR as the API server does, which takes more than one spelling for the sake of old objects.
func within(cidr string, a netip.Addr) bool {
	_, block, err := netutils.ParseCIDRSloppy(cidr)
	return err == nil && block.Contains(a.AsSlice())
}

func (o objects) port(list []networkingv1.NetworkPolicyPort, c Connection) bool {
	if len(list) == 0 {
		return true
	}
	for _, p := range list {
		proto := corev1.ProtocolTCP
		if p.Protocol != nil {
			proto = *p.Protocol
		}
		if string(proto) != c.Proto.String() {
			continue
		}
		switch {
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			if to := o.at(c.To); to != nil {
				for _, ct := range to.Spec.Containers {
					for _, cp := range ct.Ports {
						if cp.Name == p.Port.StrVal && cp.ContainerPort == int32(c.Port) && (cp.Protocol == proto || cp.Protocol == "" && proto == corev1.ProtocolTCP) {
							return true
						}
					}
				}
			}
		case p.EndPort != nil:
			if p.Port.IntVal <= int32(c.Port) && int32(c.Port) <= *p.EndPort {
				return true
			}
		case p.Port.IntVal == int32(c.Port):
			return true
		}
	}
	return false
}

// kernel lets pass what the tables say, rule by rule, as the kernel would.
func (t Tables) kernel(c Connection) bool {
	if t.Sets == nil {
		return true
	}
	for set, at := range map[string]netip.Addr{SetOut: c.From, SetIn: c.To} {
		to, known := t.Sets[set][Elem{Addr: at}]
		if known && to != Accept && !t.walk(to, c) {
			return false
		}
	}
	return true
}

// walk says whether a chain accepts; it drops in Deny, and returns otherwise.
func (t Tables) walk(chain string, c Connection) bool {
	if chain == Deny {
		_, self := t.Sets[SetSelf][Elem{Addr: c.From, Other: c.To}]
		return self
	}
	there, ok := t.Chains[chain]
	if !ok {
		panic("no chain " + chain)
	}
	for _, r := range there.Rules {
		other := c.From
		if there.Dir == Out {
			other = c.To
		}
		if r.Peers != "" {
			set, ok := t.Sets[r.Peers]
			if !ok {
				panic("no set " + r.Peers)
			}
			if _, in := set[Elem{Addr: other}]; !in {
				continue
			}
		}
		if r.Block.CIDR.IsValid() && !r.Block.Has(other) || r.Proto != 0 && r.Proto != c.Proto ||
			r.Low != 0 && (c.Port < r.Low || c.Port > r.High) {
			continue
		}
		place := Elem{Addr: c.To, Proto: c.Proto, Port: c.Port}
		if r.Named != "" {
			set, ok := t.Sets[r.Named]
			if !ok {
				panic("no set " + r.Named)
			}
			if _, in := set[place]; !in {
				continue
			}
		}
		if r.Names {
			if _, in := t.Sets[SetNames][place]; !in {
				continue
			}
		}
		if r.Then == Accept || t.walk(r.Then, c) {
			return true
		}
	}
	return false
}

func (o objects) build() *World {
	w := New()
	for _, p := range o.policies {
		_ = w.SetPolicy(p)
	}
	for _, p := range o.pods {
		w.SetPod(p)
	}
	for n, l := range o.namespaces {
		w.SetNamespace(n, l)
	}
	return w
}

// TestAgainstOracle: WL-19, after every change of any object, in any order, policies, tables and an oracle that reads the
// API's documentation naively agree about every connection; the tables are those of a world that has seen nothing else;
// and what is said to have been touched is enough to come from one state to the next.
func TestAgainstOracle(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	d := dice{rand.New(rand.NewPCG(seed, 7))}
	rounds := 300
	if testing.Short() {
		rounds = 100
	}
	o := objects{map[string]*networkingv1.NetworkPolicy{}, map[string]*corev1.Pod{}, map[string]map[string]string{}}
	w := New()
	have := There{Chains: map[string]string{}, Sets: map[string]Set{}}
	namespaces := []string{"n1", "n2"}
	for round := range rounds {
		ns := pick(d, namespaces...)
		switch d.IntN(5) {
		case 0:
			o.namespaces[ns] = d.labels()
			w.SetNamespace(ns, o.namespaces[ns])
		case 1, 2:
			name := fmt.Sprint("p", d.IntN(4))
			key := ns + "/" + name
			if d.one(4) {
				delete(o.policies, key)
				w.DropPolicy(ns, name)
				break
			}
			o.policies[key] = d.policy(ns, name)
			if err := w.SetPolicy(o.policies[key]); err != nil {
				t.Fatal(err)
			}
		default:
			n := d.IntN(3)
			name, at := fmt.Sprint("pod", n), n+1
			if ns == "n2" {
				at += 3
			}
			key := ns + "/" + name
			if d.one(5) {
				delete(o.pods, key)
				w.DropPod(ns, name)
				break
			}
			o.pods[key] = d.pod(ns, name, at)
			w.SetPod(o.pods[key])
		}
		check(t, round, w, o)
		want := w.Tables()
		if want.Sets == nil {
			have = There{Chains: map[string]string{}, Sets: map[string]Set{}}
			w.Touched()
			continue
		}
		touched := w.Touched()
		if len(have.Sets) == 0 {
			touched = nil
		}
		have.do(Diff(have, want, touched), want)
		if there := want.There(); !reflect.DeepEqual(have, there) {
			t.Fatalf("round %d: by difference %+v, at once %+v", round, have, there)
		}
		if fresh := o.build().Tables(); !reflect.DeepEqual(fresh, want) {
			t.Fatalf("round %d: a fresh world has %+v, this one %+v", round, fresh, want)
		}
	}
}

func check(t *testing.T, round int, w *World, o objects) {
	t.Helper()
	addrs := []string{"192.0.2.1", "10.0.0.9"}
	for n := 1; n <= 6; n++ {
		addrs = append(addrs, fmt.Sprintf("10.0.0.%d", n), fmt.Sprintf("fd00::%x", n))
	}
	tables := w.Tables()
	for _, from := range addrs {
		for _, to := range addrs {
			a, b := netip.MustParseAddr(from), netip.MustParseAddr(to)
			if a.Is4() != b.Is4() {
				continue
			}
			for _, proto := range []Proto{TCP, UDP, SCTP} {
				for port := uint16(80); port < 84; port++ {
					c := Connection{a, b, proto, port}
					want := o.oracle(c)
					if got := w.Judge(c); got.Allowed != want {
						t.Fatalf("round %d: %+v: judged %+v, the oracle says %v", round, c, got, want)
					}
					if got := tables.kernel(c); got != want {
						t.Fatalf("round %d: %+v: the tables say %v, the oracle %v", round, c, got, want)
					}
				}
			}
		}
	}
}

// do changes what is there as the kernel would.
func (h *There) do(c Change, want Tables) {
	for _, name := range c.AddSets {
		h.Sets[name] = Set{}
	}
	for name, list := range c.DropElems {
		for _, e := range list {
			delete(h.Sets[name], e)
		}
	}
	for name, list := range c.AddElems {
		for _, e := range list {
			h.Sets[name][e] = want.Sets[name][e]
		}
	}
	for _, name := range c.SetChains {
		h.Chains[name] = want.Chains[name].Print
	}
	for _, name := range c.DropChains {
		delete(h.Chains, name)
	}
	for _, name := range c.DropSets {
		delete(h.Sets, name)
	}
	h.Chains, h.Sets = maps.Clone(h.Chains), maps.Clone(h.Sets)
}
