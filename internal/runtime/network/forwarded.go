// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// Forwarded says where a TCP port of this machine's address leads if some pod has it as its host port, of any server's
// pods; the zero value: nowhere. An unspecified address stands for all.
func Forwarded(ip netip.Addr, port uint16) (netip.AddrPort, error) {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return netip.AddrPort{}, err
	}
	t := &table{conn, nil}
	defer t.close()
	there, err := t.everywhere()
	if err != nil {
		return netip.AddrPort{}, err
	}
	s := socket{unix.IPPROTO_TCP, netip.AddrPortFrom(ip, port), ""}
	for _, h := range there {
		if s.covers(h.hostPort) {
			return h.to, nil
		}
	}
	return netip.AddrPort{}, nil
}
