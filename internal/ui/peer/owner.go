// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// Owner finds the owner of a TCP socket by its two ends in a table as /proc/net/tcp and tcp6 are (proc_net_tcp.txt of
// the kernel). A socket that its program has closed has none.
func Owner(table string, local, remote netip.AddrPort) (uid int, ok bool) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		at, okLocal := end(f[1])
		to, okRemote := end(f[2])
		if !okLocal || !okRemote || at != local || to != remote || f[9] == "0" { // the inode
			continue
		}
		if uid, err := strconv.Atoi(f[7]); err == nil && uid >= 0 {
			return uid, true
		}
	}
	return 0, false
}

// end reads an address and a port: words of four bytes, each in the machine's order, a colon, and the port.
func end(text string) (netip.AddrPort, bool) {
	address, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(address)
	n, errPort := strconv.ParseUint(port, 16, 16)
	if err != nil || errPort != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}, false
	}
	for word := raw; len(word) > 0; word = word[4:] {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), ok
}
