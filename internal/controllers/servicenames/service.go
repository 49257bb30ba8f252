// SPDX-License-Identifier: Apache-2.0

package servicenames

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/names"
)

const (
	managedBy = "app.kubernetes.io/managed-by"
	manager   = "wherry"
	// proxyName says which program carries a service: this one not the proxy of services, but the rules that are there
	// before any pod (decision 041).
	proxyName = "service.kubernetes.io/service-proxy-name"
	// sliceManager is who writes the slice, so that no controller of slices takes it for its own.
	sliceManager = "names.wherry.dev"
	// Port is that of the service.
	Port = 53
	// usual is where in the service network the resolver of a cluster is, by custom.
	usual = 10
)

// ErrForeign says that somebody else has made service kube-dns.
var ErrForeign = errors.New("service kube-system/kube-dns was not made by wherry")

// Usual is the address in a service network that resolvers have by custom; not valid if the network is too small.
func Usual(network netip.Prefix) netip.Addr {
	ip := network.Masked().Addr()
	for range usual {
		ip = ip.Next()
	}
	if !network.Contains(ip) {
		return netip.Addr{}
	}
	return ip
}

// Ensure makes service kube-dns, at the wished address if that is free, with its endpoint slice, which says where the
// resolver is. It returns the service's address, with ErrForeign too.
func Ensure(ctx context.Context, client kubernetes.Interface, wish netip.Addr, at netip.AddrPort) (netip.Addr, error) {
	services := client.CoreV1().Services(names.ServiceNamespace)
	svc, err := services.Get(ctx, names.ServiceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		svc, err = services.Create(ctx, service(wish), metav1.CreateOptions{})
		if apierrors.IsInvalid(err) && wish.IsValid() { // somebody has the address
			svc, err = services.Create(ctx, service(netip.Addr{}), metav1.CreateOptions{})
		}
		if apierrors.IsAlreadyExists(err) {
			svc, err = services.Get(ctx, names.ServiceName, metav1.GetOptions{})
		}
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("service %s: %w", names.ServiceName, err)
	}
	ip, err := netip.ParseAddr(svc.Spec.ClusterIP)
	if err != nil {
		return ip, fmt.Errorf("service %s/%s has no address (%q): delete it, or start with --dns=none", svc.Namespace,
			svc.Name, svc.Spec.ClusterIP)
	}
	if !ours(svc) {
		return ip, ErrForeign
	}
	return ip, ensureSlice(ctx, client, slice(at))
}

func ours(s *corev1.Service) bool { return len(s.Spec.Selector) == 0 && s.Labels[managedBy] == manager }

func service(ip netip.Addr) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: names.ServiceName, Namespace: names.ServiceNamespace,
			Labels: map[string]string{
				managedBy: manager, proxyName: sliceManager, "k8s-app": names.ServiceName,
				"kubernetes.io/cluster-service": "true"}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{
			{Name: "dns", Protocol: corev1.ProtocolUDP, Port: Port, TargetPort: intstr.FromString("dns")},
			{Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: Port, TargetPort: intstr.FromString("dns-tcp")},
		}},
	}
	if ip.IsValid() {
		s.Spec.ClusterIP = ip.String()
	}
	return s
}

func slice(at netip.AddrPort) *discoveryv1.EndpointSlice {
	kind := discoveryv1.AddressTypeIPv4
	if at.Addr().Is6() {
		kind = discoveryv1.AddressTypeIPv6
	}
	port := func(name string, protocol corev1.Protocol) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: ptr.To(int32(at.Port()))}
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: names.ServiceName, Namespace: names.ServiceNamespace,
			Labels: map[string]string{
				discoveryv1.LabelServiceName: names.ServiceName, discoveryv1.LabelManagedBy: sliceManager}},
		AddressType: kind,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports: []discoveryv1.EndpointPort{port("dns", corev1.ProtocolUDP), port("dns-tcp", corev1.ProtocolTCP)},
	}
}

func ensureSlice(ctx context.Context, client kubernetes.Interface, want *discoveryv1.EndpointSlice) error {
	slices := client.DiscoveryV1().EndpointSlices(want.Namespace)
	have, err := slices.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = slices.Create(ctx, want, metav1.CreateOptions{})
	case err != nil:
	case have.AddressType != want.AddressType: // it cannot change
		if err = slices.Delete(ctx, want.Name, metav1.DeleteOptions{}); err == nil {
			_, err = slices.Create(ctx, want, metav1.CreateOptions{})
		}
	case equality.Semantic.DeepEqual(have.Endpoints, want.Endpoints) &&
		equality.Semantic.DeepEqual(have.Ports, want.Ports):
	default:
		have.Endpoints, have.Ports = want.Endpoints, want.Ports
		_, err = slices.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("endpoints of service %s: %w", want.Name, err)
	}
	return nil
}

// Remove takes the service away, if it is ours: whoever has a resolver of their own makes one of the same name.
func Remove(ctx context.Context, client kubernetes.Interface) error {
	svc, err := client.CoreV1().Services(names.ServiceNamespace).Get(ctx, names.ServiceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !ours(svc) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("service %s: %w", names.ServiceName, err)
	}
	gone := func(err error) error {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	return errors.Join(
		gone(client.DiscoveryV1().EndpointSlices(svc.Namespace).Delete(ctx, svc.Name, metav1.DeleteOptions{})),
		gone(client.CoreV1().Services(svc.Namespace).Delete(ctx, svc.Name, metav1.DeleteOptions{})))
}
