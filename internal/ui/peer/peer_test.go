// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// row is a line of a table.
func row(local, remote string, uid, inode int) string {
	hex := func(text string) string {
		at := netip.MustParseAddrPort(text)
		out := ""
		for raw := at.Addr().AsSlice(); len(raw) > 0; raw = raw[4:] {
			out += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(raw))
		}
		return fmt.Sprintf("%s:%04X", out, at.Port())
	}
	return fmt.Sprintf("   0: %s %s 01 00000000:00000000 00:00000000 00000000 %5d        0 %d 1 0 20 4 30 10 -1\n",
		hex(local), hex(remote), uid, inode)
}

// UI-03: whose a socket is, is told by both of its ends; one that was closed is nobody's.
func TestOwner(t *testing.T) {
	table := heading + row("127.0.0.1:8480", "127.0.0.1:40000", 0, 5) +
		row("127.0.0.1:40000", "127.0.0.1:8480", 1000, 6) +
		row("127.0.0.1:40001", "127.0.0.1:8480", 1001, 0) + row("[::1]:40002", "[::1]:8480", 1002, 7) +
		row("[::ffff:127.0.0.1]:40003", "[::ffff:127.0.0.1]:8480", 1003, 8) + "odd\n"
	for from, want := range map[string]int{"127.0.0.1:40000": 1000, "127.0.0.1:40001": -1, "[::1]:40002": 1002,
		"127.0.0.1:40003": 1003, "127.0.0.1:40004": -1} {
		local := netip.MustParseAddrPort(from)
		uid, ok := Owner(table, local, netip.AddrPortFrom(local.Addr(), 8480))
		if !ok {
			uid = -1
		}
		if uid != want {
			t.Errorf("%s is %d's, want %d", from, uid, want)
		}
	}
}

// UI-03: a connection of another user of the machine is closed before anything is served on it; so is one of whose
// owner nothing is known.
func TestListener(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		inner, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer inner.Close()
		refused := make(chan int, 1)
		l := &Listener{Listener: inner, Allowed: []int{0}, Refused: func(uid int) { refused <- uid }}
		accepted := make(chan net.Conn)
		go func() {
			defer close(accepted)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- c
			}
		}()
		ours, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		(<-accepted).Close()
		ours.Close()
		if err := asUser(t, 65534, inner.Addr().String()); err != nil {
			t.Error(err)
		}
		if uid := <-refused; uid != 65534 {
			t.Errorf("%s: the connection of %d was refused", address, uid)
		}
		l.Tables = t.TempDir()
		if ours, err = net.Dial("tcp", inner.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		if uid := <-refused; uid != -1 {
			t.Errorf("%s: without tables the connection of %d was refused", address, uid)
		}
		inner.Close()
		<-accepted
	}
}

// dialMark has the address in the environment of the process that connects for TestListener.
const dialMark = "WHERRY_PEER_TEST_DIAL"

// asUser connects as another user, and waits until that connection has ended.
func asUser(t *testing.T, uid uint32, address string) error {
	t.Helper()
	program := filepath.Join(t.TempDir(), "test") // in a folder that all may read
	if err := os.Chmod(filepath.Dir(filepath.Dir(program)), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.WriteFile(program, self, 0o755); err != nil {
		return err
	}
	child := exec.Command(program, "-test.run=^TestDials$")
	child.Env = append(os.Environ(), dialMark+"="+address)
	child.Dir = "/"
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := child.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// TestDials is the other user of TestListener.
func TestDials(t *testing.T) {
	address := os.Getenv(dialMark)
	if address == "" {
		return // it is not the child
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes were served", n)
	}
}

// FuzzOwner reads any table.
func FuzzOwner(f *testing.F) {
	f.Add(heading + row("127.0.0.1:40000", "127.0.0.1:8480", 1000, 6))
	f.Add("0: 0100007F:1F90 :  1 2 3 4 5 6 7")
	local, remote := netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("127.0.0.1:8480")
	f.Fuzz(func(t *testing.T, table string) {
		if uid, ok := Owner(table, local, remote); ok && uid < 0 {
			t.Errorf("%q: %d", table, uid)
		}
	})
}
