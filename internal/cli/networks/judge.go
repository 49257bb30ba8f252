// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/wherryproject/wherry/internal/netpolicy/decide"
	"github.com/wherryproject/wherry/internal/podspec"
)

type networkPolicy = networkingv1.NetworkPolicy

// question is what is asked.
type question struct {
	from, to string
	toKind   string // aPod, also for addresses, or aService
	port     string
	proto    decide.Proto
	service  string // that leads to this end, as NAMESPACE/NAME; "": it is asked for itself
	shown    string // how that end is called
}

// Answer is what is printed.
type Answer struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port"`
	Service  string `json:"service,omitempty"` // that leads there, as NAMESPACE/NAME
	decide.Verdict
}

// parse reads the arguments.
func parse(from, to string) (question, error) {
	kind, name := kindOf(strings.Trim(from, "[]"))
	if kind == aService {
		return question{}, fmt.Errorf("%s: a service sends nothing; name one of the pods behind it", from)
	}
	q := question{from: name, proto: decide.TCP}
	if kind, name := kindOf(to); kind == aService && name != "" && q.from != "" && !strings.Contains(to, ":") {
		q.toKind, q.to = kind, name // of one with a single port
		return q, nil
	}
	at := strings.LastIndexByte(to, ':')
	if at < 0 {
		return q, fmt.Errorf("%q has no port: TO:PORT, for example db:5432 or db:53/udp", to)
	}
	q.toKind, q.to = kindOf(strings.Trim(to[:at], "[]"))
	port, proto, given := strings.Cut(to[at+1:], "/")
	q.port = port
	if given {
		p := corev1.Protocol(strings.ToUpper(proto))
		if !slices.Contains([]corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}, p) {
			return q, fmt.Errorf("%q is not a protocol with ports: use tcp, udp or sctp", proto)
		}
		q.proto = decide.ProtoOf(p)
	}
	if q.from == "" || q.to == "" || q.port == "" {
		return q, errors.New("FROM, TO and PORT must not be empty")
	}
	return q, nil
}

// judgeAll answers, of a service for each of its endpoints. namespace is that of pods and services whose own is not
// named. (Pure.)
func judgeAll(q question, f found, namespace string) ([]Answer, error) {
	all := []question{q}
	s, err := f.target(q, namespace)
	if err == nil && s != nil {
		all, err = f.ends(q, s)
	}
	if err != nil {
		return nil, err
	}
	var out []Answer
	for _, q := range all {
		a, err := judge(q, f, namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// judge answers about one pod or address. (Pure.)
func judge(q question, f found, namespace string) (Answer, error) {
	from, err := f.addresses(q.from, namespace)
	if err != nil {
		return Answer{}, err
	}
	to, err := f.addresses(q.to, namespace)
	if err != nil {
		return Answer{}, err
	}
	a, b, ok := sameFamily(from, to)
	if !ok {
		return Answer{}, fmt.Errorf("%s and %s have no addresses of the same family", q.from, q.to)
	}
	port, err := f.port(q, b)
	if err != nil {
		return Answer{}, err
	}
	w, err := f.world()
	if err != nil {
		return Answer{}, err
	}
	c := decide.Connection{From: a, To: b, Proto: q.proto, Port: port}
	return Answer{From: q.from, To: cmp.Or(q.shown, q.to), Protocol: q.proto.String(), Port: port, Service: q.service,
		Verdict: w.Judge(c)}, nil
}

func (f found) world() (*decide.World, error) {
	w := decide.New()
	for i := range f.namespaces {
		w.SetNamespace(f.namespaces[i].Name, f.namespaces[i].Labels)
	}
	for i := range f.pods {
		w.SetPod(&f.pods[i])
	}
	if f.names != nil {
		if ip, err := netip.ParseAddr(f.names.Spec.ClusterIP); err == nil {
			w.SetNames(&decide.Names{Asked: netip.AddrPortFrom(ip, 53)})
		}
	}
	for i := range f.policies {
		if err := w.SetPolicy(&f.policies[i]); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// addresses are those of a pod, or the one that is named.
func (f found) addresses(what, namespace string) (out []netip.Addr, err error) {
	if a, err := netip.ParseAddr(what); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	namespace, name := qualified(what, namespace)
	for i := range f.pods {
		p := &f.pods[i]
		if p.Namespace != namespace || p.Name != name {
			continue
		}
		if p.Spec.HostNetwork {
			return nil, fmt.Errorf("pod %s/%s is on its node's network: no policy selects it; name the node's address "+
				"to ask as whom it is seen", namespace, name)
		}
		for _, ip := range p.Status.PodIPs {
			if a, err := netip.ParseAddr(ip.IP); err == nil {
				out = append(out, a.Unmap())
			}
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("pod %s/%s has no address yet", namespace, name)
		}
		return out, nil
	}
	return nil, fmt.Errorf("there is no pod %s/%s, and %q is not an address", namespace, name, what)
}

// sameFamily picks the first addresses that can speak with one another.
func sameFamily(from, to []netip.Addr) (a, b netip.Addr, ok bool) {
	for _, a := range from {
		for _, b := range to {
			if a.Is4() == b.Is4() {
				return a, b, true
			}
		}
	}
	return a, b, false
}

// port is the number of a port, by its name if it is none.
func (f found) port(q question, to netip.Addr) (uint16, error) {
	if n, err := strconv.ParseUint(q.port, 10, 16); err == nil && n > 0 {
		return uint16(n), nil
	}
	for i := range f.pods {
		p := &f.pods[i]
		if p.Spec.HostNetwork ||
			!slices.ContainsFunc(p.Status.PodIPs, func(ip corev1.PodIP) bool { return ip.IP == to.String() }) {
			continue
		}
		for ref := range podspec.OwnContainers(&p.Spec) {
			for _, port := range ref.Container.Ports {
				if port.Name == q.port && decide.ProtoOf(port.Protocol) == q.proto {
					return uint16(port.ContainerPort), nil
				}
			}
		}
	}
	return 0, fmt.Errorf("%q is neither a port's number nor the name of a %s port of %s", q.port, q.proto, q.to)
}

// text is the answer in words.
func (a Answer) text() string {
	var b strings.Builder
	word := "allowed"
	if !a.Allowed {
		word = "dropped"
	}
	by := ""
	if a.Service != "" {
		by = ", by service " + a.Service
	}
	fmt.Fprintf(&b, "%s: %s → %s %s %d%s\n", word, a.From, a.To, a.Protocol, a.Port, by)
	if a.Reason != "" {
		fmt.Fprintf(&b, "  %s\n", a.Reason)
	}
	side := func(what, who string, o *decide.Opinion) {
		switch {
		case a.Reason != "":
		case o == nil:
			fmt.Fprintf(&b, "  %s: %s is not a pod that policies select\n", what, who)
		case len(o.Policies) == 0:
			fmt.Fprintf(&b, "  %s: no policy isolates %s\n", what, o.Pod)
		case o.Allowed:
			fmt.Fprintf(&b, "  %s: %s is isolated by %s; let pass by %s\n", what, o.Pod, strings.Join(o.Policies, ", "),
				strings.Join(o.By, ", "))
		default:
			fmt.Fprintf(&b, "  %s: %s is isolated by %s, and no rule of those lets it pass\n", what, o.Pod,
				strings.Join(o.Policies, ", "))
		}
	}
	side("egress", a.From, a.Out)
	side("ingress", a.To, a.In)
	return b.String()
}
