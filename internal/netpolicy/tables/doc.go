// SPDX-License-Identifier: Apache-2.0

// Package tables makes the kernel enforce policies: it reads from nftables what is there and makes it what package
// decide says, by difference and in one transaction, so that there is no moment in which something passes that should
// not, or the other way round.
//
// [Host] names the node's network; its Read says what there is, its Make makes it what it should be, and its Watch
// signals when somebody else has changed it. Everything is in two tables of its own:
//
//	table inet wherry-<bridge>/policies {
//	  map in4, out4    { type ipv4_addr : verdict }       each pod's address: accept, or goto its profile
//	  set isolated4    { type ipv4_addr }                 the same for IPv6, if the pods have it
//	  set self4        { type ipv4_addr . ipv4_addr }
//	  set names4       { type ipv4_addr . inet_proto . inet_service }
//	  set peers/<print>4, port/<protocol>/<name>4
//	  chain egress      { filter forward filter:    iifname <bridge> jump out }
//	  chain egress-host { filter input filter:      iifname <bridge> jump out }
//	  chain ingress     { filter forward filter+1:  oifname <bridge> jump in }
//	  chain out         { ct direction reply accept; ct state related accept; …jump begun; ip saddr vmap @out4; …
//	                      goto unknown }
//	  chain in          { the same with ip daddr vmap @in4 }
//	  chain begun       { connections whose begin nobody has seen: ip saddr @isolated4 reject with tcp reset; … }
//	  chain unknown     { neighbour discovery accept; drop }
//	  chain deny        { ip saddr . ip daddr @self4 accept; drop }
//	  chain pods-in/<print>             { jump in/<namespace>/<policy>; …; jump deny }
//	  chain in/<namespace>/<policy>     { ip saddr @peers/<print>4 meta l4proto tcp th dport 80 accept; … }
//	  chain in/<namespace>/<policy>/<i> { ports of a rule with several peers }
//	}
//	table bridge wherry-<bridge>/policies {
//	  chain route   { filter prerouting -300: iifgroup <pods> meta pkttype other ether daddr set <bridge> pkttype set host }
//	  chain between { filter forward 0:       iifgroup <pods> ARP, neighbour discovery and unicast; drop }
//	}
//
// The second one has what a pod sends to another on the same bridge routed by the machine, where the first one sees it,
// so neither br_netfilter nor connection tracking in bridges is needed. What the machine itself sends to pods passes no
// hook of these: a pod's own node always reaches it.
//
// Every packet from the side that began a connection is judged, not only its first: a connection that a new policy
// forbids ends. Policies see addresses as they are after translation of the destination and before that of the source.
//
// The law: the kernel alone says what is there. Each rule carries the fingerprint of what its chain was made from.
package tables
