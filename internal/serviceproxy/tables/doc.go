// SPDX-License-Identifier: Apache-2.0

// Package tables makes the kernel carry services: it reads from nftables what is there and makes it what package decide
// says, by difference and in one transaction, so that there is no moment in which anything is missing.
//
// [Host] names the node's network; its Read says what there is, its Make makes it what it should be, and its Watch
// signals when somebody else has changed it. [Forget] has the kernel forget UDP flows. Everything is in one table of
// its own:
//
//	table inet wherry-<bridge>/services {
//	  map cluster4, external4   { type ipv4_addr . inet_proto . inet_service : verdict }
//	  map nodeports4            { type inet_proto . inet_service : verdict }
//	  set beyond4               { type ipv4_addr . inet_proto . inet_service }    the same for IPv6
//	  chain prerouting  { nat prerouting dstnat+5:   iifname <bridge> jump cluster; jump external }
//	  chain output-pods { nat output dstnat+4:       socket cgroupv2 level <depth> <pods> jump cluster }
//	  chain output      { nat output dstnat+5:       jump cluster; jump external }
//	  chain cluster     { ip daddr . meta l4proto . th dport vmap @cluster4; … }
//	  chain external    { … vmap @external4; fib daddr type local meta l4proto . th dport vmap @nodeports4; … }
//	  chain refuse      { meta l4proto tcp reject with tcp reset; reject }
//	  chain postrouting { nat postrouting srcnat:    ct status dnat ip saddr != <pods> ip daddr . meta l4proto . th dport @beyond4 masquerade }
//	  chain forward     { filter forward filter:     oifname <bridge> ct state invalid drop; iifname <bridge> ct state invalid drop }
//	  chain cluster4/<namespace>/<name>/<protocol>/<port> { dnat ip to numgen random mod 2 map { 0: …, 1: … } }
//	  …
//	}
//
// All base chains but forward are of type nat: only the first packet of a connection comes to them, so what is
// established costs nothing more, and lives on when its end is not ready any more.
//
// [Tune] sets how long the kernel remembers connections, as a kube-proxy does.
//
// The law: the kernel alone says what is there. Each rule carries the fingerprint of what its chain was made from, so a
// chain that somebody has changed, or that an older version has made, is known and made again.
package tables
