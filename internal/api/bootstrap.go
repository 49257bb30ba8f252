// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/admission"
	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation"
)

// bootstrap makes what every cluster has: the four namespaces, the default roles, the two priority classes of the
// system, the default account of namespace default (so that the first pod need not wait for a controller), and the
// service by which pods find this server, and the range of services' addresses. It runs at every start, before the
// server is ready, and goes through the same rules as everybody's writes.
func (s *Server) bootstrap(ctx context.Context) error {
	if err := s.loadAddresses(ctx); err != nil {
		return err
	}
	work := []func() error{
		func() error { return s.ensureNamespaceDefault(ctx) },
		func() error { return s.judges.rights.EnsureDefaults(ctx, s.data.stores, authn.ServerUser) },
	}
	for _, name := range []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		work = append(work, func() error { return s.ensureNamespace(ctx, name) })
	}
	work = append(work, func() error { return s.ensureServiceCIDR(ctx) })
	for _, class := range validation.SystemPriorityClasses() {
		work = append(work,
			func() error { return s.data.stores.Ensure(ctx, s.data.schemes, "priorityclasses", "", &class) })
	}
	errs := make([]error, len(work))
	var wg sync.WaitGroup
	for i, do := range work {
		wg.Go(func() { errs[i] = do() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Server) loadAddresses(ctx context.Context) error {
	services := s.data.stores["services"]
	list, err := services.List(services.Within(ctx, ""), &metainternal.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the services' addresses: %w", err)
	}
	s.data.addresses.Load(list.(*corev1.ServiceList).Items)
	s.data.nodePorts.Load(list.(*corev1.ServiceList).Items)
	return nil
}

func (s *Server) ensureNamespaceDefault(ctx context.Context) error {
	if err := s.ensureNamespace(ctx, metav1.NamespaceDefault); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: admission.DefaultAccount, Namespace: metav1.NamespaceDefault}
	if err := s.data.stores.Ensure(ctx, s.data.schemes, "serviceaccounts", metav1.NamespaceDefault,
		&corev1.ServiceAccount{ObjectMeta: meta}); err != nil {
		return err
	}
	return s.ensureService(ctx)
}

func (s *Server) ensureNamespace(ctx context.Context, name string) error {
	return s.data.stores.Ensure(ctx, s.data.schemes, "namespaces", "",
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

const serviceName = "kubernetes"

// ensureService keeps service kubernetes and its endpoint slice as this start has them.
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
	address := s.cfg.advertised(s.data.addresses.First().Is6())
	if address == "" {
		s.log.Info("the API server listens only on this machine: its service has no endpoints, and this machine's pods reach it by its service address", "service", serviceName)
		return nil
	}
	kind := discoveryv1.AddressTypeIPv4
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() {
		kind = discoveryv1.AddressTypeIPv6
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelServiceName: serviceName}},
		AddressType: kind,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(s.Port())),
			Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	return s.ensureSlice(ctx, slice)
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
	_, _, err = store.Update(ctx, serviceName, rest.DefaultUpdatedObjectInfo(svc), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
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
	_, _, err = store.Update(ctx, slice.Name, rest.DefaultUpdatedObjectInfo(wanted), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}
