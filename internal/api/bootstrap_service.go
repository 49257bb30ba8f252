// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/registry"
)

const serviceName = "kubernetes"

// ensureService keeps service kubernetes, its endpoint slice and its Endpoints as this start has them.
func (s *Server) ensureService(ctx context.Context) error {
	labels := map[string]string{"component": "apiserver", "provider": "kubernetes"}
	err := s.data.stores.Ensure(ctx, s.data.schemes, "services", metav1.NamespaceDefault, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: metav1.NamespaceDefault, Labels: labels},
		Spec: corev1.ServiceSpec{
			Type:      corev1.ServiceTypeClusterIP,
			ClusterIP: s.data.addresses.First().String(),
			Ports: []corev1.ServicePort{{
				Name: "https", Port: 443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt(s.Port()),
			}},
		},
	})
	if err != nil {
		return err
	}
	if err := s.keepServicePort(ctx); err != nil {
		return err
	}
	at := s.Advertised()
	if !at.IsValid() {
		s.log.Info("the API server listens only on this machine, which has no address besides: its service has no endpoints, and pods reach it by its service address", "service", serviceName)
		return nil
	}
	if err := s.ensureSlice(ctx, apiSlice(at)); err != nil {
		return err
	}
	return s.ensureEndpoints(ctx, apiEndpoints(at))
}

// Advertised is the address that the endpoints of service kubernetes have; the zero value when there is none. That of a
// server that listens on loopback is the machine's, as with Kubernetes: the node carries its pods' connections there
// (decision 051).
func (s *Server) Advertised() netip.AddrPort {
	ip, err := netip.ParseAddr(s.cfg.advertised(s.data.addresses.First().Is6()))
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip, uint16(s.Port()))
}

func apiSlice(at netip.AddrPort) *discoveryv1.EndpointSlice {
	kind := discoveryv1.AddressTypeIPv4
	if at.Addr().Is6() {
		kind = discoveryv1.AddressTypeIPv6
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelServiceName: serviceName}},
		AddressType: kind,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(at.Port())),
			Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
}

// apiEndpoints are for clients that do not know slices. They are not mirrored: the slice is there.
func apiEndpoints(at netip.AddrPort) *corev1.Endpoints {
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"}},
		Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: at.Addr().String()}},
			Ports: []corev1.EndpointPort{{Name: "https", Port: int32(at.Port()), Protocol: corev1.ProtocolTCP}}}},
	}
}

// keepServicePort follows the server to another port.
func (s *Server) keepServicePort(ctx context.Context) error {
	store := s.data.stores["services"]
	ctx = store.Within(ctx, metav1.NamespaceDefault)
	svc, err := registry.Get[corev1.Service](ctx, store, metav1.NamespaceDefault, serviceName)
	if err != nil {
		return err
	}
	port := intstr.FromInt(s.Port())
	if len(svc.Spec.Ports) != 1 || svc.Spec.Ports[0].TargetPort == port {
		return nil
	}
	svc.Spec.Ports[0].TargetPort = port
	return s.replace(ctx, store, serviceName, svc)
}

func (s *Server) ensureSlice(ctx context.Context, slice *discoveryv1.EndpointSlice) error {
	store := s.data.stores["endpointslices"]
	ctx = store.Within(ctx, slice.Namespace)
	have, err := store.Get(ctx, slice.Name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s.data.stores.Ensure(ctx, s.data.schemes, "endpointslices", slice.Namespace, slice)
	}
	if err != nil {
		return err
	}
	old := have.(*discoveryv1.EndpointSlice)
	if old.AddressType != slice.AddressType { // it cannot change: replace the object
		if _, _, err := store.Delete(ctx, slice.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
			return err
		}
		return s.data.stores.Ensure(ctx, s.data.schemes, "endpointslices", slice.Namespace, slice)
	}
	if equality.Semantic.DeepEqual(old.Endpoints, slice.Endpoints) &&
		equality.Semantic.DeepEqual(old.Ports, slice.Ports) {
		return nil
	}
	wanted := old.DeepCopy()
	wanted.Endpoints, wanted.Ports = slice.Endpoints, slice.Ports
	return s.replace(ctx, store, slice.Name, wanted)
}

func (s *Server) ensureEndpoints(ctx context.Context, ends *corev1.Endpoints) error {
	store := s.data.stores["endpoints"]
	ctx = store.Within(ctx, ends.Namespace)
	have, err := registry.Get[corev1.Endpoints](ctx, store, ends.Namespace, ends.Name)
	if apierrors.IsNotFound(err) {
		return s.data.stores.Ensure(ctx, s.data.schemes, "endpoints", ends.Namespace, ends)
	}
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(have.Subsets, ends.Subsets) && have.Labels[discoveryv1.LabelSkipMirror] == "true" {
		return nil
	}
	wanted := have.DeepCopy()
	wanted.Subsets = ends.Subsets
	metav1.SetMetaDataLabel(&wanted.ObjectMeta, discoveryv1.LabelSkipMirror, "true")
	return s.replace(ctx, store, ends.Name, wanted)
}

// replace writes an object that was read before.
func (s *Server) replace(ctx context.Context, store *registry.REST, name string, obj runtime.Object) error {
	_, _, err := store.Update(ctx, name, rest.DefaultUpdatedObjectInfo(obj), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}
