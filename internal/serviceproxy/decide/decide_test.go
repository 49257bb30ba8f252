// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func node() Facts {
	return Facts{Node: "n", Zone: "z", Pods: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24"), netip.MustParsePrefix("fd00::/64")},
		Machine: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
}

func service(change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.9", Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("web")}}}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

// end is "address" with marks: ! not ready, ~ about to end and serving, - about to end and not serving, @ on another node.
func slice(port string, number int32, ends ...string) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number, Protocol: ptr.To(corev1.ProtocolTCP)}}}
	for _, text := range ends {
		e := discoveryv1.Endpoint{NodeName: ptr.To("n")}
		addr := strings.TrimRight(text, "!~-@")
		e.Addresses = []string{addr}
		if strings.Contains(addr, ":") {
			out.AddressType = discoveryv1.AddressTypeIPv6
		}
		for _, mark := range text[len(addr):] {
			switch mark {
			case '!':
				e.Conditions.Ready, e.Conditions.Serving = ptr.To(false), ptr.To(false)
			case '~', '-':
				e.Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(mark == '~'), Terminating: ptr.To(true)}
			case '@':
				e.NodeName = ptr.To("other")
			}
		}
		out.Endpoints = append(out.Endpoints, e)
	}
	return out
}

// hinted gives the ends of a slice hints: the nodes that ought to use each, with commas between them; zones begin with /.
func hinted(s *discoveryv1.EndpointSlice, nodes ...string) *discoveryv1.EndpointSlice {
	for i, list := range nodes {
		if list == "" {
			continue
		}
		s.Endpoints[i].Hints = &discoveryv1.EndpointHints{}
		for n := range strings.SplitSeq(list, ",") {
			h := s.Endpoints[i].Hints
			if zone, is := strings.CutPrefix(n, "/"); is {
				h.ForZones = append(h.ForZones, discoveryv1.ForZone{Name: zone})
				continue
			}
			h.ForNodes = append(h.ForNodes, discoveryv1.ForNode{Name: n})
		}
	}
	return s
}

func markedHeadless(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	s.Labels = map[string]string{corev1.IsHeadlessService: ""}
	return s
}

// show writes down where each key leads: for everybody, or for those inside and those outside.
func show(t Tables) string {
	var lines []string
	for _, k := range slices.SortedFunc(maps.Keys(t.Keys), compareKeys) {
		lines = append(lines, fmt.Sprintf("%d %s > %s", k.Place, k, t.show(t.Keys[k])))
	}
	return strings.Join(lines, "\n")
}

func (t Tables) show(chain string) string {
	if chain == Refuse {
		return Refuse
	}
	c := t.Chains[chain]
	var ends []string
	for _, e := range c.Ends {
		ends = append(ends, e.At.String())
	}
	text := strings.Join(ends, " ")
	if text == "" {
		text = Refuse
	}
	if len(c.Sources) > 0 {
		text += fmt.Sprint(" only ", c.Sources)
	}
	if c.Inside != "" {
		text += " (inside: " + t.show(c.Inside) + ")"
	}
	return text
}

// TestOf: WL-09, WL-10, WL-11, SC-26: where connections to a service lead.
func TestOf(t *testing.T) {
	local := corev1.ServiceExternalTrafficPolicyLocal
	balancer := func(s *corev1.ServiceSpec) {
		s.Type = corev1.ServiceTypeLoadBalancer
		s.Ports[0].NodePort = 30080
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.ServiceSpec)
		status []string // load balancers' addresses
		ends   []*discoveryv1.EndpointSlice
		want   string
	}{
		{name: "WL-11 no endpoints", want: "1 10.96.0.9:80/tcp > refuse"},
		{name: "two", ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.3", "10.244.0.2")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.2:8080 10.244.0.3:8080"},
		{name: "WL-09 a slice that is marked headless is nobody's", ends: []*discoveryv1.EndpointSlice{markedHeadless(slice("http", 8080, "10.244.0.3")),
			slice("http", 8080, "10.244.0.2")}, want: "1 10.96.0.9:80/tcp > 10.244.0.2:8080"},
		{name: "WL-09 hints: the one for this node", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3", "10.244.9.2@"), "n", "other")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080"},
		{name: "WL-09 hints: one for two nodes", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3", "10.244.9.2@"), "other", "other,n")},
			want: "1 10.96.0.9:80/tcp > 10.244.9.2:8080"},
		{name: "WL-09 hints: none for this node", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3", "10.244.9.2@"), "a", "b")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080 10.244.9.2:8080"},
		{name: "WL-09 hints: a ready one has none", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3", "10.244.9.2@"), "n", "")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080 10.244.9.2:8080"},
		{name: "WL-09 hints: the one for this node is not ready", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3!", "10.244.9.2@"), "n", "other")},
			want: "1 10.96.0.9:80/tcp > 10.244.9.2:8080"},
		{name: "WL-09 hints: those for this zone", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3", "10.244.9.2@", "10.244.9.3@"), "/z", "/a", "/a,/z")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080 10.244.9.3:8080"},
		{name: "WL-09 hints: none for this zone", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3", "10.244.9.2@"), "/a", "/b")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080 10.244.9.2:8080"},
		{name: "WL-09 hints: a ready one has no zone", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3", "10.244.9.2@"), "/z", "n")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080 10.244.9.2:8080"},
		{name: "WL-09 hints: the node comes before its zone", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3", "10.244.9.2@"), "n,/z", "other,/z")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080"},
		{name: "WL-09 hints: none for this node, so those for its zone", ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.8.3@", "10.244.9.2@"), "a,/z", "b,/y")},
			want: "1 10.96.0.9:80/tcp > 10.244.8.3:8080"},
		{name: "WL-09 hints mean nothing where traffic is to stay here", change: func(s *corev1.ServiceSpec) {
			s.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
		},
			ends: []*discoveryv1.EndpointSlice{hinted(slice("http", 8080, "10.244.0.3", "10.244.0.2"), "n", "other")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.2:8080 10.244.0.3:8080"},
		{name: "one in two slices", ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.3!"), slice("http", 8080, "10.244.0.3")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080"},
		{name: "WL-10 only those that are ready", ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.3", "10.244.0.2!", "10.244.0.4~")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080"},
		{name: "SC-26 those that end, if nobody else is there", ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.3~", "10.244.0.2!", "10.244.0.4-")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.3:8080"},
		{name: "WL-11 none that serves", ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.2!", "10.244.0.4-")},
			want: "1 10.96.0.9:80/tcp > refuse"},
		{name: "ports by name, one for itself", change: func(s *corev1.ServiceSpec) {
			s.Ports = append(s.Ports, corev1.ServicePort{Name: "admin", Port: 81, Protocol: corev1.ProtocolTCP})
		}, ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.2"), slice("other", 9090, "10.244.0.2")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.2:8080\n1 10.96.0.9:81/tcp > refuse"},
		{name: "another protocol", change: func(s *corev1.ServiceSpec) { s.Ports[0].Protocol = corev1.ProtocolUDP },
			ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.2")}, want: "1 10.96.0.9:80/udp > refuse"},
		{name: "both families", change: func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"10.96.0.9", "fd01::9"} },
			ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.2"), slice("http", 8080, "fd00::2")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.2:8080\n1 [fd01::9]:80/tcp > [fd00::2]:8080"},
		{name: "internal traffic stays here", change: func(s *corev1.ServiceSpec) {
			s.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
			s.ExternalIPs = []string{"198.51.100.1"}
		}, ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.2", "10.9.9.9@")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.2:8080\n2 198.51.100.1:80/tcp > 10.9.9.9:8080 10.244.0.2:8080"},
		{name: "node port and balancer", change: balancer, status: []string{"192.0.2.1"},
			ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.2")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.2:8080\n2 192.0.2.1:80/tcp > 10.244.0.2:8080\n3 node port 30080/tcp (IPv4) > 10.244.0.2:8080"},
		{name: "external traffic stays here, inside has the choice", change: func(s *corev1.ServiceSpec) {
			balancer(s)
			s.ExternalTrafficPolicy = local
		}, ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.9.9.9@")},
			want: "1 10.96.0.9:80/tcp > 10.9.9.9:8080\n3 node port 30080/tcp (IPv4) > refuse (inside: 10.9.9.9:8080)"},
		{name: "only some clients of the balancer", change: func(s *corev1.ServiceSpec) {
			balancer(s)
			s.LoadBalancerSourceRanges = []string{" 10.0.0.0/8", "fd00::/8"}
		}, status: []string{"192.0.2.1"}, ends: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.2")},
			want: "1 10.96.0.9:80/tcp > 10.244.0.2:8080\n2 192.0.2.1:80/tcp > 10.244.0.2:8080 only [10.0.0.0/8]\n3 node port 30080/tcp (IPv4) > 10.244.0.2:8080"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := service(c.change)
			for _, ip := range c.status {
				s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
			}
			p := Of(node(), s, c.ends)
			if got := show(p.Tables); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			slices.Reverse(c.ends)
			if again := Of(node(), s, c.ends); !maps.Equal(again.There().Chains, p.There().Chains) {
				t.Error("slices in another order give other chains")
			}
		})
	}
}

// TestCarried: WL-09: what has no address, and what others carry, is left alone.
func TestCarried(t *testing.T) {
	api := service(nil)
	api.Namespace, api.Name = "default", "kubernetes"
	other := service(nil)
	other.Labels = map[string]string{otherProxy: "x"}
	marked := service(nil)
	marked.Labels = map[string]string{corev1.IsHeadlessService: ""}
	for name, c := range map[string]struct {
		s    *corev1.Service
		want bool
	}{
		"ordinary":        {service(nil), true},
		"headless":        {service(func(s *corev1.ServiceSpec) { s.ClusterIP = "None" }), false},
		"a name":          {service(func(s *corev1.ServiceSpec) { s.Type, s.ClusterIP = corev1.ServiceTypeExternalName, "" }), false},
		"the API server":  {api, false},
		"another proxy":   {other, false},
		"marked headless": {marked, false},
	} {
		if got := Carried(c.s); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestAffinity: WL-09: each endpoint has a chain that remembers its clients, and those that were there come first.
func TestAffinity(t *testing.T) {
	s := service(func(s *corev1.ServiceSpec) {
		s.SessionAffinity = corev1.ServiceAffinityClientIP
		s.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](60)}}
	})
	p := Of(node(), s, []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.2", "10.244.0.3")})
	c := p.Chains[p.Keys[Key{Place: Cluster, Addr: netip.MustParseAddr("10.96.0.9"), Proto: TCP, Port: 80}]]
	if len(c.Ends) != 2 || c.Timeout != time.Minute || len(p.Clients) != 2 {
		t.Fatalf("the chain is %+v, sets %v", c, p.Clients)
	}
	for _, e := range c.Ends {
		own := p.Chains[e.Chain]
		if _, there := p.Clients[e.Clients]; !there || own.Remember != e.Clients || own.Ends[0].At != e.At || own.Timeout != time.Minute {
			t.Errorf("%s: its chain is %+v", e.At, own)
		}
	}
}

// TestMerge: WL-24: an address and port that two services want is the older one's, whatever their names.
func TestMerge(t *testing.T) {
	now := time.Now()
	part := func(name string, age time.Duration) *Part {
		s := service(func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"198.51.100.1"} })
		s.Name, s.CreationTimestamp = name, metav1.NewTime(now.Add(-age))
		s.Spec.ClusterIP = map[string]string{"a": "10.96.0.1", "b": "10.96.0.2"}[name]
		return Of(node(), s, []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.2")})
	}
	parts := []*Part{part("a", time.Hour), part("b", 2*time.Hour)}
	key := Key{Place: External, Addr: netip.MustParseAddr("198.51.100.1"), Proto: TCP, Port: 80}
	if got := Merge(parts).Keys[key]; got != "cluster4/ns/b/tcp/80" {
		t.Errorf("it goes to %s", got)
	}
	if lost := Lost(parts); len(lost) != 1 || lost[0] != (Loss{Key: key, Loser: "ns/a", Has: "ns/b"}) {
		t.Errorf("lost: %+v", lost)
	}
}

// TestFlows: WL-10: after a change those UDP flows are forgotten that lead to an endpoint that is gone, or to nobody, and no others.
func TestFlows(t *testing.T) {
	udp := func(ends ...string) Tables {
		s := service(func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].Protocol, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, corev1.ProtocolUDP, 30053
		})
		e := slice("http", 53, ends...)
		e.Ports[0].Protocol = ptr.To(corev1.ProtocolUDP)
		return Merge([]*Part{Of(node(), s, []*discoveryv1.EndpointSlice{e})})
	}
	had, now := udp("10.244.0.2", "10.244.0.3"), udp("10.244.0.3")
	change := Diff(had.There(), now.There())
	flows := change.Flows(node(), now)
	if flows == nil {
		t.Fatal("no flow is looked at")
	}
	for _, c := range []struct {
		to, answers string
		want        bool
	}{
		{"10.96.0.9:80", "10.244.0.2:53", true},
		{"10.96.0.9:80", "10.244.0.3:53", false},
		{"10.96.0.9:81", "10.244.0.2:53", false},
		{"192.0.2.1:30053", "10.244.0.2:53", true},
		{"192.0.2.1:30053", "192.0.2.1:30053", true}, // from before there was the service
		{"127.0.0.1:30053", "10.244.0.3:53", false},
		{"8.8.8.8:30053", "8.8.8.8:30053", false},
	} {
		if got := flows.Stale(Flow{To: netip.MustParseAddrPort(c.to), Answers: netip.MustParseAddrPort(c.answers)}); got != c.want {
			t.Errorf("%s answered by %s: %t", c.to, c.answers, got)
		}
	}
	gone := Diff(now.There(), Merge(nil).There())
	if flows := gone.Flows(node(), Merge(nil)); flows == nil ||
		!flows.Stale(Flow{To: netip.MustParseAddrPort("10.96.0.9:80"), Answers: netip.MustParseAddrPort("10.244.0.3:53")}) {
		t.Error("flows of a service that is gone stay")
	}
	if none := (Change{}).Flows(node(), now); none != nil {
		t.Error("without a change flows are looked at")
	}
	all := now.Flows(node())
	for why, f := range map[string]*Flows{"after a start": all, "after a failure": (*Flows)(nil).And(all), "before": all.And(nil),
		"of two changes": flows.And(Diff(now.There(), Merge(nil).There()).Flows(node(), Merge(nil)))} {
		if !f.Stale(Flow{To: netip.MustParseAddrPort("10.96.0.9:80"), Answers: netip.MustParseAddrPort("10.244.0.2:53")}) ||
			f.Stale(Flow{To: netip.MustParseAddrPort("10.96.0.9:80"), Answers: netip.MustParseAddrPort("10.244.0.3:53")}) {
			t.Errorf("%s a flow to what is gone stays, or one to what is there does not", why)
		}
	}
	if Merge(nil).Flows(node()) != nil || (*Flows)(nil).And(nil) != nil {
		t.Error("without services flows are looked at")
	}
}
