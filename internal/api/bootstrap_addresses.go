// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/networking"

	"github.com/wherryproject/wherry/internal/api/upstream"
)

// ensureServiceCIDR says where the addresses of services come from. The object of a start with another range stays:
// services have addresses there.
func (s *Server) ensureServiceCIDR(ctx context.Context) error {
	return s.data.stores.Ensure(ctx, s.data.schemes, upstream.ServiceCIDRs, "", &networking.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName},
		Spec:       networking.ServiceCIDRSpec{CIDRs: []string{s.data.addresses.Range().String()}},
	})
}
