// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/api/admission"
	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/validation"
)

// bootstrap makes what every cluster has: the four namespaces, the default roles, the two priority classes of the
// system, the default account of namespace default (so that the first pod need not wait for a controller), and the
// service by which pods find this server, the bundle by which they trust it, and the range of services' addresses. It
// runs at every start, before the server is ready, and goes through the same rules as everybody's writes.
func (s *Server) bootstrap(ctx context.Context) error {
	if err := s.data.keeper.Load(ctx); err != nil {
		return err
	}
	work := []func() error{
		func() error { return s.ensureNamespaceDefault(ctx) },
		func() error { return s.judges.rights.EnsureDefaults(ctx, s.data.stores, authn.ServerUser) },
	}
	work = append(work,
		func() error { return s.ensureNamespaceSystem(ctx) },
		func() error { return s.served.aggregation.Bootstrap(ctx) })
	for _, name := range []string{metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		work = append(work, func() error { return s.ensureNamespace(ctx, name) })
	}
	work = append(work, func() error { return s.ensureServiceCIDR(ctx) },
		func() error { return s.ensureTrustBundle(ctx) })
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
