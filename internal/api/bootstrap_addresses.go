// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/networking"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/upstream"
)

// ensureServiceCIDR says where the addresses of services come from. The object of a start with another range stays:
// services have addresses there. Those of this start's range are given nevertheless.
func (s *Server) ensureServiceCIDR(ctx context.Context) error {
	own := s.data.addresses.Range().String()
	err := s.data.stores.Ensure(ctx, s.data.schemes, upstream.ServiceCIDRs, "", &networking.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName},
		Spec:       networking.ServiceCIDRSpec{CIDRs: []string{own}},
	})
	if err != nil {
		return err
	}
	have, err := registry.Get[networking.ServiceCIDR](ctx, s.data.stores[upstream.ServiceCIDRs], "", serviceName)
	if err == nil && !slices.Contains(have.Spec.CIDRs, own) {
		s.log.Warn("the server was started with another range of services' addresses before: that stays too, as ServiceCIDR kubernetes",
			"service-cidr", own, "servicecidr", strings.Join(have.Spec.CIDRs, ","))
	}
	return nil
}
