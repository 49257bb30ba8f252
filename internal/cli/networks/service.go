// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/netpolicy/decide"
)

// What FROM and TO can be besides addresses.
const (
	aPod     = "pod"
	aService = "service"
)

// kindOf splits what a person writes: POD, NAMESPACE/POD, pod/POD, svc/SERVICE, svc/NAMESPACE/SERVICE.
func kindOf(what string) (kind, name string) {
	if before, after, ok := strings.Cut(what, "/"); ok {
		switch strings.ToLower(before) {
		case "pod", "pods", "po":
			return aPod, after
		case "svc", "service", "services":
			return aService, after
		}
	}
	return aPod, what
}

// qualified is the namespace and the name of what is named with or without the former.
func qualified(name, namespace string) (ns, short string) {
	if ns, short, ok := strings.Cut(name, "/"); ok {
		return ns, short
	}
	return namespace, name
}

// target is the service that is asked for, by its name or its address; nil if it is none. The service of the server's
// own resolver, which has no pods, is its address.
func (f found) target(q question, namespace string) (*corev1.Service, error) {
	address, err := netip.ParseAddr(q.to)
	isAddress := err == nil
	ns, name := qualified(q.to, namespace)
	for i := range f.services {
		s := &f.services[i]
		switch {
		case isAddress && slices.Contains(append(s.Spec.ExternalIPs, s.Spec.ClusterIPs...), address.String()),
			q.toKind == aService && s.Namespace == ns && s.Name == name:
			return s, nil
		}
	}
	if q.toKind == aService {
		return nil, fmt.Errorf("there is no service %s/%s", ns, name)
	}
	return nil, nil
}

// ends are what a question about a service is about: each endpoint behind it, by its address and the port there.
// (Pure.)
func (f found) ends(q question, s *corev1.Service) ([]question, error) {
	what := "service " + s.Namespace + "/" + s.Name
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return nil, fmt.Errorf("%s is another name of %s: policies see the addresses behind that; name one of them",
			what, s.Spec.ExternalName)
	case f.own(s):
		q.to, q.toKind, q.port = s.Spec.ClusterIP, aPod, cmp.Or(q.port, "53") // answered by a process of the machine
		return []question{q}, nil
	}
	port, err := servicePort(q, s)
	if err != nil {
		return nil, err
	}
	headless := s.Spec.ClusterIP == corev1.ClusterIPNone
	var all, unready []question
	for i := range f.slices {
		slice := &f.slices[i]
		if slice.Namespace != s.Namespace || slice.Labels[discoveryv1.LabelServiceName] != s.Name ||
			slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		number := portOf(slice, port, q.proto)
		if headless && number != 0 {
			number = port.Port // its name leads to the pods themselves: nothing translates the port
		}
		for _, e := range slice.Endpoints {
			if number == 0 || len(e.Addresses) == 0 {
				continue
			}
			to := q
			to.to, to.toKind, to.port = e.Addresses[0], aPod, strconv.Itoa(int(number))
			to.service, to.shown = s.Namespace+"/"+s.Name, e.Addresses[0]
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				to.shown = e.TargetRef.Namespace + "/" + e.TargetRef.Name
			}
			if serves(e) {
				all = append(all, to)
			} else {
				unready = append(unready, to)
			}
		}
	}
	if len(all) == 0 && len(unready) > 0 {
		return nil,
			fmt.Errorf("%s has %d endpoints and none is ready: connections to it are refused, whatever policies say",
				what, len(unready))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no endpoints at port %s: connections to it are refused, whatever policies say",
			what, q.port)
	}
	slices.SortStableFunc(all, func(a, b question) int { return cmp.Compare(a.shown, b.shown) })
	return all, nil
}

// serves reports whether connections are led to an endpoint: a condition that is not set counts as true
// (EndpointConditions). One that terminates serves while no other does, and so may have some.
func serves(e discoveryv1.Endpoint) bool {
	return e.Conditions.Ready == nil || *e.Conditions.Ready ||
		ptr.Deref(e.Conditions.Serving, false) && ptr.Deref(e.Conditions.Terminating, false)
}

// own reports whether a service is that of the server's own resolver.
func (f found) own(s *corev1.Service) bool {
	return f.names != nil && s.Namespace == f.names.Namespace && s.Name == f.names.Name
}

// servicePort is the service's port that is asked for, by its number or its name.
func servicePort(q question, s *corev1.Service) (corev1.ServicePort, error) {
	if q.port == "" && len(s.Spec.Ports) == 1 && decide.ProtoOf(s.Spec.Ports[0].Protocol) == q.proto {
		return s.Spec.Ports[0], nil
	}
	var have []string
	for _, p := range s.Spec.Ports {
		if decide.ProtoOf(p.Protocol) == q.proto && (p.Name == q.port || strconv.Itoa(int(p.Port)) == q.port) {
			return p, nil
		}
		have = append(have, strings.TrimPrefix(fmt.Sprintf("%s %d/%s", p.Name, p.Port,
			strings.ToLower(string(p.Protocol))), " "))
	}
	if q.port == "" {
		return corev1.ServicePort{}, fmt.Errorf("which port of service %s/%s? it has %s", s.Namespace, s.Name,
			cmp.Or(strings.Join(have, ", "), "none"))
	}
	return corev1.ServicePort{}, fmt.Errorf("service %s/%s has no port %s/%s; it has %s", s.Namespace, s.Name, q.port,
		strings.ToLower(q.proto.String()), cmp.Or(strings.Join(have, ", "), "none"))
}

// portOf is where the endpoints of a slice serve a port of their service; 0 if they do not.
func portOf(slice *discoveryv1.EndpointSlice, of corev1.ServicePort, proto decide.Proto) int32 {
	for _, p := range slice.Ports {
		named := p.Name == nil && of.Name == "" || p.Name != nil && *p.Name == of.Name
		if named && p.Port != nil && (p.Protocol == nil || decide.ProtoOf(*p.Protocol) == proto) {
			return *p.Port
		}
	}
	return 0
}
