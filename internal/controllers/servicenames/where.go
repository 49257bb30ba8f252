// SPDX-License-Identifier: Apache-2.0

package servicenames

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Where reads what [Ensure] has written: the address that pods ask, and where a wherry server's resolver answers. The
// latter is not valid if the service is somebody else's. (Pure.)
func Where(svc *corev1.Service, slice *discoveryv1.EndpointSlice) (ask netip.Addr, at netip.AddrPort) {
	ask, err := netip.ParseAddr(svc.Spec.ClusterIP)
	if err != nil || !ours(svc) || slice.Labels[discoveryv1.LabelManagedBy] != sliceManager {
		return ask, netip.AddrPort{}
	}
	for _, e := range slice.Endpoints {
		for _, p := range slice.Ports {
			if len(e.Addresses) == 0 || p.Port == nil || *p.Port <= 0 || *p.Port > 65535 {
				continue
			}
			if a, err := netip.ParseAddr(e.Addresses[0]); err == nil {
				return ask, netip.AddrPortFrom(a, uint16(*p.Port))
			}
		}
	}
	return ask, netip.AddrPort{}
}
