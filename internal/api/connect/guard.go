// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// onlyOutside is the Control of a dialer that reaches pods and services for clients: it refuses addresses which mean
// this machine or its link, whatever name or record they came from. There lie the host's own services, and a cloud's
// metadata with its keys. It is asked for the address itself, after names are resolved, so that no name can be made to
// mean something else meanwhile.
func onlyOutside(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	if ip = ip.Unmap(); ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
		return fmt.Errorf("proxying to address %s is not allowed", ip)
	}
	return nil
}
