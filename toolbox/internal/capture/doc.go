// SPDX-License-Identifier: Apache-2.0

// Package capture has tcpdump: filter expressions ([compile], to the kernel's packet filter), capturing on all
// interfaces or one, and a line of words for each packet ([printer]).
//
// Its law: packets are taken at the network layer, so that all kinds of interfaces look alike and files have the format
// of "any" (LINKTYPE_LINUX_SLL); nothing is changed, so interfaces are not made promiscuous; addresses are never looked
// up.
package capture

import "github.com/wherryproject/wherry/toolbox/internal/applet"

// Applets returns the package's commands.
func Applets() []applet.Applet {
	return []applet.Applet{{Name: "tcpdump", Usage: "[EXPRESSION]", Short: "Show the packets that come and go",
		Names: true, Run: tcpdump}}
}
