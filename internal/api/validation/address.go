// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// notLocalAddress: what others are sent to must not be this machine, this link, or nobody.
func notLocalAddress(path *field.Path, address string) (all rules.Errs) {
	ip := net.ParseIP(address)
	if ip == nil {
		return rules.Errs{field.Invalid(path, address, "must be a valid IP address")}
	}
	for _, wrong := range []struct {
		is    bool
		words string
	}{
		{ip.IsUnspecified(), "may not be unspecified"},
		{ip.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
		{ip.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
		{ip.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"},
	} {
		if wrong.is {
			all = append(all, field.Invalid(path, address, wrong.words))
		}
	}
	return all
}

func isIPv6(address string) bool {
	ip := net.ParseIP(address)
	return ip != nil && ip.To4() == nil
}
