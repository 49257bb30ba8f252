// SPDX-License-Identifier: Apache-2.0

// Package network connects pods to one bridge on this machine. It has two users: the server, which calls Setup once at
// boot (bridge, forwarding, one nftables table with one masquerade rule per address family), GC for what a crash left
// behind, and has a Keeper make again what others take away while it runs; and the CNI plug-in cmd/wherry-cni, which
// calls Add, Del and Check for every pod sandbox.
//
// Config says which bridge, which pod CIDRs and where the leases lie; everything else (table, veth names, hardware
// addresses) is derived from it, so two servers with different configs never meet. Lease is one address held by one
// attachment. PortMapping is one host port.
//
// Laws: what the kernel knows is never stored a second time: the bridge's MTU, the veths and the host ports
// (elements of nftables maps that carry their owner as comment) are the state; only address leases are files. Every
// step is a single atomic call (a symlink, a netlink batch), so a plug-in killed anywhere leaves nothing that Del or GC
// does not find. The package is on the path of every pod start: it imports little and does as few system calls as it
// can.
//
// Caveats: a base chain of somebody else with policy drop on the forward hook (Docker's, a firewall's) drops pod
// traffic whatever our table says, as nftables accepts a packet only if every table does; Blockers names such chains,
// the server at its start and in the node's condition. A host port is reachable on 127.0.0.1 but not on ::1, since IPv6
// has no way to route a packet from ::1 off the loopback device.
package network
