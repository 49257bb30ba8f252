// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// FuzzFilter compiles expressions: what is taken is a program that ends on every packet.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"", "tcp port 80 or 443", "not (src host 10.0.0.1 and udp)", "tcp[13] & 2 != 0", "ip6 net fd00::/8", "portrange 1-2", "len <= 99", "ether[0]=1", "((((", "tcp[0:9]"} {
		f.Add(s, []byte("\x08\x00E\x00\x00\x28"))
	}
	f.Fuzz(func(t *testing.T, source string, packet []byte) {
		if hasNames(source) {
			return
		}
		for _, live := range []bool{true, false} {
			program, err := compile(source, live)
			if err != nil {
				continue
			}
			if _, err := bpf.Assemble(program); err != nil {
				t.Errorf("%q: %v", source, err)
			}
			if live { // the kernel's extensions are not known to the machine
				continue
			}
			vm, err := bpf.NewVM(program)
			if err != nil {
				t.Fatalf("%q: %v", source, err)
			}
			if _, err := vm.Run(packet); err != nil {
				t.Errorf("%q: %v", source, err)
			}
		}
	})
}

// hasNames: there may be names of hosts in an expression, which somebody would be asked for.
func hasNames(source string) bool {
	for _, word := range []string{"host", "net", "src", "dst"} {
		if strings.Contains(source, word) && strings.ContainsAny(source, "ghijklmqvwxyz") {
			return true
		}
	}
	return false
}

// FuzzFile shows files of packets, which anybody may have written, in every way of showing them.
func FuzzFile(f *testing.F) {
	for _, link := range []uint32{ethernet, rawIP, cooked, cooked2} {
		for _, p := range samples() {
			text := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
			text = append(text, make([]byte, 16)...)
			text = binary.LittleEndian.AppendUint32(text, link)
			whole := append(make([]byte, map[uint32]int{ethernet: 14, cooked: 16, cooked2: 20}[link]), p.data...)
			switch link {
			case ethernet:
				binary.BigEndian.PutUint16(whole[12:], p.proto)
			case cooked:
				binary.BigEndian.PutUint16(whole[14:], p.proto)
			case cooked2:
				binary.BigEndian.PutUint16(whole, p.proto)
			}
			text = append(text, make([]byte, 8)...)
			text = binary.LittleEndian.AppendUint32(text, uint32(len(whole)))
			text = binary.LittleEndian.AppendUint32(text, uint32(len(whole)))
			f.Add(append(text, whole...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, p := range []printer{{}, {times: 3, verbose: 3, link: true, hexText: true, absolute: true}, {quiet: true, asciiOK: true, verbose: 1}, {hexOnly: true}} {
			var out bytes.Buffer
			p.call = &applet.Call{Out: bufio.NewWriter(&out), Err: &out}
			d := &dump{Call: p.call, print: &p}
			filter, err := compile("", false)
			if err != nil {
				t.Fatal(err)
			}
			_ = d.read(name, filter) // any error is fine
		}
	})
}
