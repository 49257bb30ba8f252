// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

func servicePrinter() Printer {
	spec := corev1.ServiceSpec{}.SwaggerDoc()
	return Printer{
		Columns: columns(
			nameColumn(),
			text("Type", spec["type"]),
			text("Cluster-IP", spec["clusterIP"]),
			text("External-IP", spec["externalIPs"]),
			text("Port(s)", spec["ports"]),
			ageColumn(),
			wideText("Selector", spec["selector"]),
		),
		Row: rowOf(func(s *corev1.Service, now time.Time) []any {
			return []any{
				s.Name, string(s.Spec.Type), clusterIP(s), externalIP(s), servicePorts(s.Spec.Ports),
				age(s.CreationTimestamp, now), labels.FormatLabels(s.Spec.Selector),
			}
		}),
	}
}

func clusterIP(s *corev1.Service) string {
	if len(s.Spec.ClusterIPs) > 0 {
		return s.Spec.ClusterIPs[0]
	}
	return orElse(s.Spec.ClusterIP, none)
}

func externalIP(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return orElse(strings.Join(s.Spec.ExternalIPs, ","), none)
	case corev1.ServiceTypeLoadBalancer:
		var addresses []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			if a := orElse(in.IP, in.Hostname); a != "" {
				addresses = append(addresses, a)
			}
		}
		return orElse(strings.Join(append(addresses, s.Spec.ExternalIPs...), ","), "<pending>")
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	}
	return unknown
}

func servicePorts(ports []corev1.ServicePort) string {
	var items []string
	for _, p := range ports {
		item := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			item = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
		items = append(items, item)
	}
	return orElse(strings.Join(items, ","), none)
}

func endpointsPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("Endpoints", corev1.Endpoints{}.SwaggerDoc()["subsets"]), ageColumn()),
		Row: rowOf(func(e *corev1.Endpoints, now time.Time) []any {
			return []any{e.Name, endpointAddresses(e.Subsets), age(e.CreationTimestamp, now)}
		}),
	}
}

func endpointAddresses(subsets []corev1.EndpointSubset) string {
	var items []string
	for _, set := range subsets {
		if len(set.Ports) == 0 {
			for _, a := range set.Addresses {
				items = append(items, a.IP)
			}
		}
		for _, port := range set.Ports {
			for _, a := range set.Addresses {
				items = append(items, net.JoinHostPort(a.IP, strconv.Itoa(int(port.Port))))
			}
		}
	}
	return shortList(items, none)
}

func endpointSlicePrinter() Printer {
	doc := discoveryv1.EndpointSlice{}.SwaggerDoc()
	return Printer{
		Columns: columns(
			nameColumn(),
			text("AddressType", doc["addressType"]),
			text("Ports", doc["ports"]),
			text("Endpoints", doc["endpoints"]),
			ageColumn(),
		),
		Row: rowOf(func(s *discoveryv1.EndpointSlice, now time.Time) []any {
			var ports, addresses []string
			for _, p := range s.Ports {
				ports = append(ports, slicePort(p))
			}
			for _, e := range s.Endpoints {
				addresses = append(addresses, e.Addresses...)
			}
			return []any{
				s.Name, string(s.AddressType), shortList(ports, unset), shortList(addresses, unset),
				age(s.CreationTimestamp, now),
			}
		}),
	}
}

func slicePort(p discoveryv1.EndpointPort) string {
	if p.Port != nil {
		return strconv.Itoa(int(*p.Port))
	}
	return orElse(ptr.Deref(p.Name, ""), "*")
}
