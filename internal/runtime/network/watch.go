// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// watch signals when something may have been taken from the network with this bridge: by a token in the channel that it
// returns. It looks at the kernel's notices only as far as to leave out most of those about pods that come. When one
// cannot be received any more, an error comes from the other channel, and from then on nothing does. It ends with ctx.
func watch(ctx context.Context, bridge string) (<-chan struct{}, <-chan error, error) {
	routes, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR,
		unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_NETCONF, unix.RTNLGRP_IPV6_NETCONF)
	if err != nil {
		return nil, nil, fmt.Errorf("watch the machine's network devices: %w", err)
	}
	rules, err := nl.Subscribe(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		routes.Close()
		return nil, nil, fmt.Errorf("watch the machine's nftables: %w", err)
	}
	context.AfterFunc(ctx, func() {
		routes.Close()
		rules.Close()
	})
	changed, failed := make(chan struct{}, 1), make(chan error, 2)
	receive := func(from *nl.NetlinkSocket, matters func(syscall.NetlinkMessage) bool) {
		for {
			messages, _, err := from.Receive()
			if err != nil && !errors.Is(err, unix.ENOBUFS) { // that one says only that some were lost
				failed <- err
				return
			}
			token := err != nil
			for _, m := range messages {
				token = token || matters(m)
			}
			if !token {
				continue
			}
			select {
			case changed <- struct{}{}:
			default: // one waits to be taken, and will be after this
			}
		}
	}
	go receive(routes, func(m syscall.NetlinkMessage) bool { return mattersRoute(m, bridge) })
	go receive(rules, func(m syscall.NetlinkMessage) bool { return mattersRules(m, bridge) })
	return changed, failed, nil
}

// mattersRoute says whether a notice of rtnetlink can be of a loss.
func mattersRoute(m syscall.NetlinkMessage, bridge string) bool {
	switch m.Header.Type {
	case unix.RTM_DELADDR, unix.RTM_NEWNETCONF:
		return true
	case unix.RTM_DELROUTE:
		const protocol = 5 // of struct rtmsg
		return len(m.Data) > protocol && m.Data[protocol] == routeMark
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		if len(m.Data) < unix.SizeofIfInfomsg {
			return false
		}
		attrs, err := attributes(m.Data[unix.SizeofIfInfomsg:])
		if err != nil {
			return true
		}
		var name string
		attached := false
		for _, a := range attrs {
			switch a.Attr.Type {
			case unix.IFLA_IFNAME:
				name = string(a.Value[:max(0, len(a.Value)-1)])
			case unix.IFLA_MASTER:
				attached = true
			}
		}
		ours := name == bridge || strings.HasPrefix(name, vethPrefix)
		up := binary.NativeEndian.Uint32(m.Data[8:])&unix.IFF_UP != 0 // ifi_flags
		return ours && (m.Header.Type == unix.RTM_DELLINK || !up || name != bridge && !attached)
	}
	return false
}

// mattersRules says whether a notice of nftables is about our table, and not of a host port that came.
func mattersRules(m syscall.NetlinkMessage, bridge string) bool {
	switch int(m.Header.Type) &^ nftTables {
	case unix.NFT_MSG_NEWSETELEM, unix.NFT_MSG_NEWSET, unix.NFT_MSG_NEWGEN:
		return false
	}
	return ofTable(m.Data, bridge)
}
