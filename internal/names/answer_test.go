// SPDX-License-Identifier: Apache-2.0

package names

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func ips(texts ...string) (out []netip.Addr) {
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

// example is a world with one of everything.
func example() *World {
	w := New(Zone{Domain: "cluster.local", Networks: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("10.1.0.0/24")}})
	http, dns := Port{"http", "tcp", 80}, Port{"dns", "udp", 53}
	for _, s := range []Service{
		{Namespace: "default", Name: "kubernetes", IPs: ips("10.96.0.1"), Ports: []Port{{"https", "tcp", 443}}},
		{Namespace: "kube-system", Name: "kube-dns", IPs: ips("10.96.0.10"), Ports: []Port{dns}},
		{Namespace: "shop", Name: "web", IPs: ips("10.96.0.7", "fd00::7"), Ports: []Port{http, dns, {"", "tcp", 81}}},
		{Namespace: "shop", Name: "db"},
		{Namespace: "shop", Name: "db6"},
		{Namespace: "shop", Name: "none"},
		{Namespace: "shop", Name: "ext", ExternalName: "www.Example.com"},
		{Namespace: "shop", Name: "alias", ExternalName: "web.shop.svc.cluster.local."},
		{Namespace: "shop", Name: "round", ExternalName: "round.shop.svc.cluster.local"},
	} {
		w.Apply(Change{Service: &s})
	}
	for _, s := range []Slice{
		{Namespace: "shop", Name: "db-1", Service: "db", Ports: []Port{{"sql", "tcp", 5432}}, Endpoints: []Endpoint{
			{Hostname: "db-0", Addresses: ips("10.1.0.5")}, {Addresses: ips("10.1.0.6")}}},
		{Namespace: "shop", Name: "db-2", Service: "db", Ports: []Port{{"sql", "tcp", 5432}}, Endpoints: []Endpoint{
			{Hostname: "db-0", Addresses: ips("10.1.0.5")}, {Hostname: "db-0", Addresses: ips("10.1.0.8")}}},
		{Namespace: "shop", Name: "db6-1", Service: "db6", Endpoints: []Endpoint{{Addresses: ips("fd00::99")}}},
		{Namespace: "shop", Name: "web-1", Service: "web", Ports: []Port{{"http", "tcp", 8080}}, Endpoints: []Endpoint{
			{Hostname: "w", Addresses: ips("10.1.0.7")}}},
	} {
		w.Apply(Change{Slice: &s})
	}
	w.Apply(Change{Pod: &Pod{Namespace: "lonely", Name: "p", UID: "u", IPs: ips("10.1.0.9")}})
	return w
}

// answered is a reply in one line: its records, or what else it says.
func answered(r Reply) string {
	var out []string
	for _, a := range r.Answers {
		out = append(out, a.Name+" "+TypeName(a.Type)+" "+a.Word())
	}
	switch {
	case r.Outside:
		out = append(out, "outside")
	case r.Follow != "":
		out = append(out, "follow "+r.Follow)
	}
	if r.Code != 0 || len(out) == 0 {
		out = append(out, CodeName(r.Code))
	}
	if r.SOA != "" {
		out = append(out, "SOA "+r.SOA)
	}
	return strings.Join(out, "; ")
}

// WL-13 (P): every record of the specification, version 1.1.0, and what has none.
func TestAnswer(t *testing.T) {
	w := example()
	const no, nothing = "NXDOMAIN; SOA cluster.local", "NOERROR; SOA cluster.local"
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		// 2.2: the version
		{"dns-version.cluster.local", dnsmessage.TypeTXT, "dns-version.cluster.local TXT 1.1.0"},
		{"dns-version.cluster.local", dnsmessage.TypeA, nothing},
		{"x.dns-version.cluster.local", dnsmessage.TypeTXT, no},
		// 2.3: services with an address
		{"kubernetes.default.svc.cluster.local", dnsmessage.TypeA, "kubernetes.default.svc.cluster.local A 10.96.0.1"},
		{"Kubernetes.DEFAULT.svc.Cluster.Local.", dnsmessage.TypeA, "kubernetes.default.svc.cluster.local A 10.96.0.1"},
		{"kubernetes.default.svc.cluster.local", dnsmessage.TypeAAAA, nothing},
		{"kubernetes.default.svc.cluster.local", dnsmessage.TypeMX, nothing},
		{"web.shop.svc.cluster.local", dnsmessage.TypeAAAA, "web.shop.svc.cluster.local AAAA fd00::7"},
		{"_http._tcp.web.shop.svc.cluster.local", dnsmessage.TypeSRV, "_http._tcp.web.shop.svc.cluster.local SRV web.shop.svc.cluster.local:80"},
		{"_http._udp.web.shop.svc.cluster.local", dnsmessage.TypeSRV, no},
		{"_nope._tcp.web.shop.svc.cluster.local", dnsmessage.TypeSRV, no},
		{"_._tcp.web.shop.svc.cluster.local", dnsmessage.TypeSRV, no}, // a port without a name
		{"http._tcp.web.shop.svc.cluster.local", dnsmessage.TypeSRV, no},
		{"_http._tcp.web.shop.svc.cluster.local", dnsmessage.TypeA, "_http._tcp.web.shop.svc.cluster.local A 10.96.0.7"},
		{"_tcp.web.shop.svc.cluster.local", dnsmessage.TypeSRV, nothing},
		{"_sctp.web.shop.svc.cluster.local", dnsmessage.TypeSRV, no},
		{"web.shop.svc.cluster.local", dnsmessage.TypeSRV,
			"web.shop.svc.cluster.local SRV web.shop.svc.cluster.local:80; web.shop.svc.cluster.local SRV web.shop.svc.cluster.local:53; web.shop.svc.cluster.local SRV web.shop.svc.cluster.local:81"},
		{"7.0.96.10.in-addr.arpa", dnsmessage.TypePTR, "7.0.96.10.in-addr.arpa PTR web.shop.svc.cluster.local"},
		{"7.0.96.10.in-addr.arpa", dnsmessage.TypeA, "NOERROR; SOA 0.96.10.in-addr.arpa"},
		{"7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa", dnsmessage.TypePTR,
			"7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa PTR web.shop.svc.cluster.local"},
		{"w.web.shop.svc.cluster.local", dnsmessage.TypeA, "w.web.shop.svc.cluster.local A 10.1.0.7"},
		// 2.4: headless ones
		{"db.shop.svc.cluster.local", dnsmessage.TypeA,
			"db.shop.svc.cluster.local A 10.1.0.5; db.shop.svc.cluster.local A 10.1.0.6; db.shop.svc.cluster.local A 10.1.0.8"},
		{"db.shop.svc.cluster.local", dnsmessage.TypeAAAA, nothing},
		{"db6.shop.svc.cluster.local", dnsmessage.TypeAAAA, "db6.shop.svc.cluster.local AAAA fd00::99"},
		{"fd00--99.db6.shop.svc.cluster.local", dnsmessage.TypeAAAA, "fd00--99.db6.shop.svc.cluster.local AAAA fd00::99"},
		{"none.shop.svc.cluster.local", dnsmessage.TypeA, no}, // as the specification has it
		{"db-0.db.shop.svc.cluster.local", dnsmessage.TypeA,
			"db-0.db.shop.svc.cluster.local A 10.1.0.5; db-0.db.shop.svc.cluster.local A 10.1.0.8"},
		{"10-1-0-6.db.shop.svc.cluster.local", dnsmessage.TypeA, "10-1-0-6.db.shop.svc.cluster.local A 10.1.0.6"},
		{"10-1-0-5.db.shop.svc.cluster.local", dnsmessage.TypeA, no}, // its name is db-0
		{"db-9.db.shop.svc.cluster.local", dnsmessage.TypeA, no},
		{"_sql._tcp.db.shop.svc.cluster.local", dnsmessage.TypeSRV,
			"_sql._tcp.db.shop.svc.cluster.local SRV db-0.db.shop.svc.cluster.local:5432; " +
				"_sql._tcp.db.shop.svc.cluster.local SRV 10-1-0-6.db.shop.svc.cluster.local:5432"},
		{"_sql._tcp.none.shop.svc.cluster.local", dnsmessage.TypeSRV, no},
		{"5.0.1.10.in-addr.arpa", dnsmessage.TypePTR, "5.0.1.10.in-addr.arpa PTR db-0.db.shop.svc.cluster.local"},
		{"7.0.1.10.in-addr.arpa", dnsmessage.TypePTR, "NXDOMAIN; SOA 0.1.10.in-addr.arpa"}, // behind a service with an address
		// 2.5: other names
		{"ext.shop.svc.cluster.local", dnsmessage.TypeA, "ext.shop.svc.cluster.local CNAME -> www.Example.com; follow www.Example.com"},
		{"ext.shop.svc.cluster.local", dnsmessage.TypeCNAME, "ext.shop.svc.cluster.local CNAME -> www.Example.com"},
		{"x.ext.shop.svc.cluster.local", dnsmessage.TypeA, no},
		{"alias.shop.svc.cluster.local", dnsmessage.TypeA,
			"alias.shop.svc.cluster.local CNAME -> web.shop.svc.cluster.local; web.shop.svc.cluster.local A 10.96.0.7"},
		// 2.6: pods by their address
		{"10-1-0-77.anything.pod.cluster.local", dnsmessage.TypeA, "10-1-0-77.anything.pod.cluster.local A 10.1.0.77"},
		{"fd00--1.shop.pod.cluster.local", dnsmessage.TypeAAAA, "fd00--1.shop.pod.cluster.local AAAA fd00::1"},
		{"10-1-0-77.shop.pod.cluster.local", dnsmessage.TypeAAAA, nothing},
		{"10-1-0-777.shop.pod.cluster.local", dnsmessage.TypeA, no},
		{"web.shop.pod.cluster.local", dnsmessage.TypeA, no},
		// names that other names are below of
		{"cluster.local", dnsmessage.TypeA, nothing},
		{"cluster.local", dnsmessage.TypeNS, "cluster.local NS ns.dns.cluster.local"},
		{"cluster.local", dnsmessage.TypeSOA, "cluster.local SOA SOA"},
		{"ns.dns.cluster.local", dnsmessage.TypeA, "ns.dns.cluster.local A 10.96.0.10"},
		{"dns.cluster.local", dnsmessage.TypeA, nothing},
		{"svc.cluster.local", dnsmessage.TypeA, nothing},
		{"pod.cluster.local", dnsmessage.TypeA, nothing},
		{"shop.svc.cluster.local", dnsmessage.TypeA, nothing},
		{"lonely.pod.cluster.local", dnsmessage.TypeA, nothing},
		{"nowhere.svc.cluster.local", dnsmessage.TypeA, no},
		// what is not there
		{"web.other.svc.cluster.local", dnsmessage.TypeA, no},
		{"a.b.c.web.shop.svc.cluster.local", dnsmessage.TypeA, no},
		{"web.cluster.local", dnsmessage.TypeA, no},
		{"*.shop.svc.cluster.local", dnsmessage.TypeA, no},
		{"9.9.96.10.in-addr.arpa", dnsmessage.TypePTR, "NXDOMAIN; SOA 9.96.10.in-addr.arpa"},
		{"kubernetes.default.svc.cluster.local", dnsmessage.TypeALL, "NOTIMP"},
		// what is somebody else's
		{"example.com", dnsmessage.TypeA, "outside"},
		{"mycluster.local", dnsmessage.TypeA, "outside"},
		{"", dnsmessage.TypeNS, "outside"},
		{"8.8.8.8.in-addr.arpa", dnsmessage.TypePTR, "outside"},
		{"x.8.8.8.in-addr.arpa", dnsmessage.TypePTR, "outside"},
	} {
		if got := answered(w.Answer(Question{Name: c.name, Type: c.kind})); got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.name, TypeName(c.kind), got, c.want)
		}
	}
}

// WL-13 (P): services that are one another's external names end.
func TestAliasOfItself(t *testing.T) {
	r := example().Answer(Question{Name: "round.shop.svc.cluster.local", Type: dnsmessage.TypeA})
	if r.Code != dnsmessage.RCodeServerFailure {
		t.Errorf("%s", answered(r))
	}
}

// WL-13 (P): clients that take the first address are spread over all.
func TestTurns(t *testing.T) {
	first := map[string]bool{}
	for turn := range 3 {
		r := example().Answer(Question{Name: "db.shop.svc.cluster.local", Type: dnsmessage.TypeA, Turn: turn})
		if len(r.Answers) != 3 {
			t.Fatal(answered(r))
		}
		first[r.Answers[0].Word()] = true
	}
	if len(first) != 3 {
		t.Errorf("first were only %v", first)
	}
}

// WL-13 (P): SRV records come with the addresses that they lead to, and share the load evenly.
func TestExtra(t *testing.T) {
	r := example().Answer(Question{Name: "_sql._tcp.db.shop.svc.cluster.local", Type: dnsmessage.TypeSRV})
	var extra []string
	for _, e := range r.Extra {
		extra = append(extra, e.Name+" "+e.Word())
	}
	want := []string{"db-0.db.shop.svc.cluster.local 10.1.0.5", "10-1-0-6.db.shop.svc.cluster.local 10.1.0.6",
		"db-0.db.shop.svc.cluster.local 10.1.0.8"}
	if !slices.Equal(extra, want) || r.Answers[0].Weight != 50 {
		t.Errorf("%v, weight %d", extra, r.Answers[0].Weight)
	}
}

// WL-13 (P): what changes and goes takes its names with it, and nobody else's.
func TestChanges(t *testing.T) {
	w := example()
	is := func(name string, kind dnsmessage.Type, want string) {
		t.Helper()
		if got := answered(w.Answer(Question{Name: name, Type: kind})); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	// another service has the address before the old one is known to be gone
	w.Apply(Change{Service: &Service{Namespace: "shop", Name: "web2", IPs: ips("10.96.0.7")}})
	w.Apply(Change{Gone: true, Service: &Service{Namespace: "shop", Name: "web"}})
	is("web.shop.svc.cluster.local", dnsmessage.TypeA, "NXDOMAIN; SOA cluster.local")
	is("7.0.96.10.in-addr.arpa", dnsmessage.TypePTR, "7.0.96.10.in-addr.arpa PTR web2.shop.svc.cluster.local")
	w.Apply(Change{Gone: true, Slice: &Slice{Namespace: "shop", Name: "db-1"}})
	is("db.shop.svc.cluster.local", dnsmessage.TypeA, "db.shop.svc.cluster.local A 10.1.0.5; db.shop.svc.cluster.local A 10.1.0.8")
	is("6.0.1.10.in-addr.arpa", dnsmessage.TypePTR, "NXDOMAIN; SOA 0.1.10.in-addr.arpa")
	// endpoints that are known before their service
	w.Apply(Change{Slice: &Slice{Namespace: "new", Name: "s", Service: "late", Endpoints: []Endpoint{{Addresses: ips("10.1.0.3")}}}})
	is("late.new.svc.cluster.local", dnsmessage.TypeA, "NXDOMAIN; SOA cluster.local")
	w.Apply(Change{Service: &Service{Namespace: "new", Name: "late"}})
	is("late.new.svc.cluster.local", dnsmessage.TypeA, "late.new.svc.cluster.local A 10.1.0.3")
	if p := w.PodAt(netip.MustParseAddr("::ffff:10.1.0.9")); p == nil || p.UID != "u" {
		t.Errorf("pod: %v", p)
	}
	w.Apply(Change{Pod: &Pod{Namespace: "lonely", Name: "q", UID: "v", IPs: ips("10.1.0.9")}})
	w.Apply(Change{Gone: true, Pod: &Pod{Namespace: "lonely", Name: "p"}})
	if p := w.PodAt(netip.MustParseAddr("10.1.0.9")); p == nil || p.UID != "v" {
		t.Errorf("pod: %v", p)
	}
	w.Apply(Change{Gone: true, Pod: &Pod{Namespace: "lonely", Name: "q"}})
	is("lonely.pod.cluster.local", dnsmessage.TypeA, "NXDOMAIN; SOA cluster.local")
	// all that there is makes the same world
	again := New(w.zone)
	for _, c := range w.All() {
		again.Apply(c)
	}
	w = again
	is("db.shop.svc.cluster.local", dnsmessage.TypeA, "db.shop.svc.cluster.local A 10.1.0.5; db.shop.svc.cluster.local A 10.1.0.8")
	for _, c := range w.All() {
		c.Gone = true
		w.Apply(c)
	}
	if left := len(w.services) + len(w.slices) + len(w.pods) + len(w.sliced) + len(w.clusterIPs) + len(w.endpoints) +
		len(w.addresses) + len(w.namespaces); left != 0 {
		t.Errorf("%d entries are left of nothing", left)
	}
}
