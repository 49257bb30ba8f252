// SPDX-License-Identifier: Apache-2.0

package names

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Version is that of the specification.
const Version = "1.1.0"

const (
	// TTL is how long an answer of ours may be kept, in seconds: names change with their services.
	TTL = 5
	// deepest is how many aliases are followed, one service's external name being another's.
	deepest = 8
	// Services and Namespace are where the resolver itself is to be found.
	ServiceName, ServiceNamespace = "kube-dns", "kube-system"
)

// Question is what somebody wants to know.
type Question struct {
	Name string // without the last dot
	Type dnsmessage.Type
	Turn int // answers with several records begin with another one at each turn
}

// Record is one of a reply.
type Record struct {
	Name     string // without the last dot
	Type     dnsmessage.Type
	Addr     netip.Addr // A, AAAA
	Target   string     // CNAME, PTR, SRV, NS, MX
	Port     uint16     // SRV
	Weight   uint16     // SRV
	Priority uint16     // SRV, MX
	Text     string     // TXT
}

// Reply is what is answered.
type Reply struct {
	// Outside: the name is not of the cluster, and somebody else is to be asked for it.
	Outside bool
	Code    dnsmessage.RCode
	Answers []Record
	Extra   []Record
	// SOA names the zone that says no, of a reply without an answer.
	SOA string
	// Follow is a name outside of the cluster that the last answer is an alias of: the rest of the answer is its.
	Follow string
}

// Answer looks a name up.
func (w *World) Answer(q Question) Reply {
	full := strings.ToLower(strings.TrimSuffix(q.Name, "."))
	domain := w.domain()
	if ip, ok := reversed(full); ok {
		return w.reverse(full, ip, q)
	}
	if full != domain && !strings.HasSuffix(full, "."+domain) {
		return Reply{Outside: true}
	}
	if q.Type == dnsmessage.TypeAXFR || q.Type == dnsmessage.TypeALL {
		return Reply{Code: dnsmessage.RCodeNotImplemented}
	}
	r := w.inside(full, q, deepest)
	if !slices.ContainsFunc(r.Answers,
		func(a Record) bool { return a.Type == q.Type || a.Type == dnsmessage.TypeCNAME }) {
		r.SOA = domain
	}
	return r
}

func (w *World) domain() string { return strings.ToLower(strings.TrimSuffix(w.zone.Domain, ".")) }

// no is the reply that a name does not exist; nothing that it does, but not with such a record.
func no() Reply      { return Reply{Code: dnsmessage.RCodeNameError} }
func nothing() Reply { return Reply{} }

func existing(exists bool) Reply {
	if exists {
		return nothing()
	}
	return no()
}

// inside answers for a name of the cluster.
func (w *World) inside(full string, q Question, depth int) Reply {
	if full == w.domain() {
		if q.Type == dnsmessage.TypeNS {
			return Reply{Answers: []Record{{Name: full, Type: q.Type, Target: "ns.dns." + full}},
				Extra: w.own("ns.dns." + full)}
		}
		if q.Type == dnsmessage.TypeSOA {
			return Reply{Answers: []Record{{Name: full, Type: q.Type}}}
		}
		return nothing()
	}
	labels := strings.Split(strings.TrimSuffix(full, "."+w.domain()), ".")
	last := len(labels) - 1
	switch labels[last] {
	case "svc":
		return w.service(full, labels[:last], q, depth)
	case "pod":
		return w.pod(full, labels[:last], q)
	case "dns-version":
		if last == 0 {
			return only(q, Record{Name: full, Type: dnsmessage.TypeTXT, Text: Version})
		}
	case "dns":
		switch {
		case last == 0:
			return nothing()
		case last == 1 && labels[0] == "ns":
			return only(q, w.own(full)...)
		}
	}
	return no()
}

// only picks the records of the type that is asked for.
func only(q Question, all ...Record) (r Reply) {
	for _, a := range all {
		if a.Type == q.Type {
			r.Answers = append(r.Answers, a)
		}
	}
	if n := len(r.Answers); n > 1 {
		turn := q.Turn % n
		r.Answers = slices.Concat(r.Answers[turn:], r.Answers[:turn])
	}
	return r
}

// own is the addresses of the resolver under a name.
func (w *World) own(full string) []Record {
	s := w.services[name{ServiceNamespace, ServiceName}]
	if s == nil {
		return nil
	}
	return addresses(full, s.IPs)
}

func addresses(full string, ips []netip.Addr) (out []Record) {
	for _, ip := range ips {
		out = append(out, address(full, ip))
	}
	return out
}

func address(full string, ip netip.Addr) Record {
	if ip.Is4() {
		return Record{Name: full, Type: dnsmessage.TypeA, Addr: ip}
	}
	return Record{Name: full, Type: dnsmessage.TypeAAAA, Addr: ip}
}

// pod answers for 10-1-2-3.NAMESPACE.pod, which the specification has for any address.
func (w *World) pod(full string, labels []string, q Question) Reply {
	switch len(labels) {
	case 0:
		return nothing()
	case 1:
		return existing(w.namespaces[labels[0]] > 0)
	case 2:
		if ip, ok := dashed(labels[0]); ok {
			return only(q, address(full, ip))
		}
	}
	return no()
}

// dashed reads an address with dashes for its dots or colons.
func dashed(text string) (netip.Addr, bool) {
	sep := ":"
	if strings.Count(text, "-") == 3 && !strings.Contains(text, "--") {
		sep = "."
	}
	ip, err := netip.ParseAddr(strings.ReplaceAll(text, "-", sep))
	return ip, err == nil && ip.Zone() == "" && !ip.Is4In6()
}

// service answers for names below svc: labels are those before it.
func (w *World) service(full string, labels []string, q Question, depth int) Reply {
	n := len(labels)
	if n < 2 {
		return existing(n == 0 || w.namespaces[labels[0]] > 0)
	}
	key := name{labels[n-1], labels[n-2]}
	s := w.services[key]
	if s == nil || n > 4 {
		return no()
	}
	if s.ExternalName != "" {
		if n > 2 {
			return no()
		}
		return w.alias(full, s.ExternalName, q, depth)
	}
	switch n {
	case 2:
		return w.whole(full, s, q)
	case 3:
		if proto, ok := strings.CutPrefix(labels[0], "_"); ok {
			return existing(slices.ContainsFunc(w.ports(s),
				func(p Port) bool { return p.Name != "" && p.Protocol == proto }))
		}
		return w.endpoint(full, labels[0], s, q)
	}
	port, isPort := strings.CutPrefix(labels[0], "_")
	proto, isProto := strings.CutPrefix(labels[1], "_")
	if !isPort || !isProto || port == "" {
		return no()
	}
	return w.srv(full, s, q, func(p Port) bool { return p.Name == port && p.Protocol == proto })
}

// alias answers for a service that is another name.
func (w *World) alias(full, target string, q Question, depth int) Reply {
	target = strings.TrimSuffix(target, ".")
	r := Reply{Answers: []Record{{Name: full, Type: dnsmessage.TypeCNAME, Target: target}}}
	lower := strings.ToLower(target)
	_, isReverse := reversed(lower)
	switch {
	case q.Type == dnsmessage.TypeCNAME:
	case isReverse || lower != w.domain() && !strings.HasSuffix(lower, "."+w.domain()):
		r.Follow = target
	case depth == 0:
		r.Code = dnsmessage.RCodeServerFailure
	default:
		rest := w.inside(lower, q, depth-1)
		rest.Answers = append(r.Answers, rest.Answers...)
		return rest
	}
	return r
}

// whole answers for a service as such.
func (w *World) whole(full string, s *Service, q Question) Reply {
	if q.Type == dnsmessage.TypeSRV {
		return w.srv(full, s, q, func(Port) bool { return true })
	}
	if len(s.IPs) > 0 {
		return only(q, addresses(full, s.IPs)...)
	}
	var all []Record
	for e := range w.ready(s) {
		for _, ip := range e.Addresses {
			if a := address(full, ip); !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	if len(all) == 0 {
		return no()
	}
	return only(q, all...)
}

// ready goes through the endpoints of a service, with their ports, in a fixed order.
func (w *World) ready(s *Service) func(func(Endpoint, []Port) bool) {
	return func(yield func(Endpoint, []Port) bool) {
		of := w.sliced[name{s.Namespace, s.Name}]
		for _, k := range sorted(of) {
			for _, e := range of[k].Endpoints {
				if !yield(e, of[k].Ports) {
					return
				}
			}
		}
	}
}

// ports are those that have SRV records.
func (w *World) ports(s *Service) []Port {
	if len(s.IPs) > 0 {
		return s.Ports
	}
	var all []Port
	for _, ports := range w.ready(s) {
		all = append(all, ports...)
	}
	return all
}

// called is the name of an endpoint within its service: its host name, or what stands for one.
func called(e Endpoint, ip netip.Addr) string {
	if e.Hostname != "" {
		return strings.ToLower(e.Hostname)
	}
	return strings.NewReplacer(".", "-", ":", "-").Replace(ip.String())
}

// endpoint answers for HOSTNAME.SERVICE.
func (w *World) endpoint(full, host string, s *Service, q Question) Reply {
	var all []Record
	var ports []Record
	for e, open := range w.ready(s) {
		for _, ip := range e.Addresses {
			a := address(full, ip)
			if called(e, ip) != host || slices.Contains(all, a) {
				continue
			}
			all = append(all, a)
			for _, p := range open {
				ports = append(ports, Record{Name: full, Type: dnsmessage.TypeSRV, Target: full, Port: p.Number})
			}
		}
	}
	if len(all) == 0 {
		return no()
	}
	if q.Type == dnsmessage.TypeSRV {
		return weighed(q, unique(ports), all) // the same endpoint may have addresses of both families
	}
	return only(q, all...)
}

// srv answers with the ports that match, and for a port's name with the service's addresses, as CoreDNS does. Names
// that have no such record, but exist, have nothing.
func (w *World) srv(full string, s *Service, q Question, match func(Port) bool) Reply {
	base := s.Name + "." + s.Namespace + ".svc." + w.domain()
	var all, extra []Record
	add := func(target string, ips []netip.Addr, ports []Port) {
		has := full == base
		for _, p := range ports {
			if match(p) {
				has = true
				all = append(all, Record{Name: full, Type: dnsmessage.TypeSRV, Target: target, Port: p.Number})
			}
		}
		if has {
			extra = append(extra, addresses(target, ips)...)
		}
	}
	if len(s.IPs) > 0 {
		add(base, s.IPs, s.Ports)
	} else {
		for e, ports := range w.ready(s) {
			for _, ip := range e.Addresses {
				add(called(e, ip)+"."+base, []netip.Addr{ip}, ports)
			}
		}
	}
	switch {
	case len(all) == 0 && (full != base || len(extra) == 0):
		return no()
	case q.Type != dnsmessage.TypeSRV:
		for i := range extra {
			extra[i].Name = full
		}
		return only(q, unique(extra)...)
	}
	return weighed(q, unique(all), unique(extra))
}

// unique is records without those that are there twice.
func unique(all []Record) (out []Record) {
	for _, a := range all {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// weighed spreads clients evenly over records.
func weighed(q Question, all, extra []Record) Reply {
	for i := range all {
		all[i].Weight = uint16(max(100/len(all), 1))
	}
	r := only(q, all...)
	if len(r.Answers) > 0 {
		r.Extra = extra
	}
	return r
}
