// SPDX-License-Identifier: Apache-2.0

package network

import (
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzSockets reads the kernel's tables of sockets.
func FuzzSockets(f *testing.F) {
	f.Add("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0000000000000000 100 0 0 10 0\n", byte(unix.IPPROTO_TCP))
	f.Add("   0: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07 0:0 0:0 0 0 0 9\n", byte(unix.IPPROTO_UDP))
	f.Add("ENDPT SOCK STY SST HBKT LPORT UID INODE LADDRS\n0 0 2 10 29 11111 0 2 *10.0.0.1 ::1\n", byte(unix.IPPROTO_SCTP))
	f.Fuzz(func(t *testing.T, text string, proto byte) {
		for _, s := range append(parseSockets(text, proto), parseSCTP(text)...) {
			if !s.at.Addr().IsValid() || s.inode == "" {
				t.Errorf("%q: %+v", text, s)
			}
		}
	})
}

// FuzzConf reads what the runtime hands to the plug-in. What is valid is the same when it was written and read again.
func FuzzConf(f *testing.F) {
	f.Add([]byte(`{"type":"wherry-cni","bridge":"wherry0","cidrs":["10.1.0.0/16","fd00::/64"],"stateDir":"/run/x","runtimeConfig":{"portMappings":[{"hostPort":1,"containerPort":2,"protocol":"tcp"}]}}`))
	f.Add([]byte(`{"plugins":[{"bridge":"b","cidrs":["0.0.0.0/0"]}]}`))
	f.Add([]byte(`{"cidrs":["::ffff:10.0.0.0/8",""],"runtimeConfig":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = ParseConfList(text) // any error is fine
		c, _, err := parseConf(text)
		if err != nil {
			return
		}
		again, err := ParseConfList(ConfList(c))
		if err != nil || again.Bridge != c.Bridge || again.StateDir != c.StateDir || !slices.Equal(again.CIDRs, c.CIDRs) {
			t.Errorf("%s: %+v, then %+v: %v", text, c, again, err)
		}
		for _, p := range c.CIDRs {
			if g := Gateway(p); !c.Has(g) {
				t.Errorf("%s: the gateway %s is not in the network", p, g)
			}
		}
	})
}

// FuzzNotice reads notices of the kernel.
func FuzzNotice(f *testing.F) {
	link := append(make([]byte, unix.SizeofIfInfomsg), 12, 0, 3, 0, 'w', 'h', 'e', 'r', 'r', 'y', '0', 0)
	f.Add(uint16(unix.RTM_NEWLINK), link)
	f.Add(uint16(unix.RTM_DELLINK), link[:20])
	f.Add(uint16(unix.RTM_DELROUTE), []byte{0, 0, 0, 0, 0, routeMark})
	f.Add(uint16(nftTables|unix.NFT_MSG_DELTABLE), []byte{1, 0, 0, 0, 8, 0, nftTableName, 0, 'a', 'b', 'c', 0})
	f.Fuzz(func(_ *testing.T, kind uint16, data []byte) {
		m := syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: kind}, Data: data}
		mattersRoute(m, "wherry0")
		mattersRules(m, "wherry0")
	})
}
