// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The tests that need a network run in a network namespace of their own that plays the host: TestMain starts the test
// binary again inside one. So they touch nothing of the machine, and all they leave behind vanishes with the namespace.
func TestMain(m *testing.M) {
	const mark = "WHERRY_NETWORK_TEST_NAMESPACE"
	if os.Getuid() != 0 || os.Getenv(mark) != "" {
		if os.Getuid() == 0 {
			lo, err := netlink.LinkByName("lo")
			if err == nil {
				err = netlink.LinkSetUp(lo)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "lo up:", err)
				os.Exit(1)
			}
		}
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
}

// host sets a pod network up and takes it down at the end.
func host(t testing.TB, bridge string, cidrs ...string) Config {
	t.Helper()
	needRoot(t)
	c := Config{Bridge: bridge, StateDir: filepath.Join(t.TempDir(), "network")}
	for _, s := range cidrs {
		c.CIDRs = append(c.CIDRs, netip.MustParsePrefix(s))
	}
	if err := Setup(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Teardown(c); err != nil {
			t.Error(err)
		}
	})
	return c
}

// sandbox is a network namespace as a pod has one.
type sandbox struct {
	t    testing.TB
	path string
	file *os.File
	gone bool
}

func newSandbox(t testing.TB) *sandbox {
	t.Helper()
	s := &sandbox{t: t, path: filepath.Join(t.TempDir(), "netns")}
	if err := os.WriteFile(s.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends in the new namespace
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), s.path, "", unix.MS_BIND, "")
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	f, err := openNetns(s.path)
	if err != nil {
		t.Fatal(err)
	}
	s.file = f
	t.Cleanup(s.destroy)
	return s
}

// destroy takes the namespace away, as a reboot or a crashed runtime would.
func (s *sandbox) destroy() {
	if s.gone {
		return
	}
	s.gone = true
	s.file.Close()
	if err := unix.Unmount(s.path, unix.MNT_DETACH); err != nil {
		s.t.Error(err)
	}
	os.Remove(s.path)
}

func (s *sandbox) do(f func() error) error { return inNetns(s.file, f) }

// listen starts an echo server of the protocol in the sandbox that answers with its name and the address of its caller.
func (s *sandbox) listen(network, name string, port int) {
	s.t.Helper()
	addr := fmt.Sprintf(":%d", port)
	err := s.do(func() error {
		if strings.HasPrefix(network, "udp") {
			p, err := net.ListenPacket(network, addr)
			if err != nil {
				return err
			}
			s.t.Cleanup(func() { p.Close() })
			go answerPackets(p, name)
			return nil
		}
		l, err := net.Listen(network, addr)
		if err != nil {
			return err
		}
		s.t.Cleanup(func() { l.Close() })
		go answerConns(l, name)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func answerPackets(p net.PacketConn, name string) {
	buf := make([]byte, 1500)
	for {
		_, from, err := p.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = p.WriteTo(answer(name, from), from)
	}
}

func answerConns(l net.Listener, name string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write(answer(name, c.RemoteAddr()))
		c.Close()
	}
}

func answer(name string, from net.Addr) []byte {
	host, _, _ := net.SplitHostPort(from.String())
	return []byte(name + " " + host)
}

// call speaks to addr from the calling thread's namespace and returns the answer.
func call(network, addr string) (string, error) {
	c, err := net.DialTimeout(network, addr, 20*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if strings.HasPrefix(network, "udp") {
		if _, err := c.Write([]byte("hello")); err != nil {
			return "", err
		}
	}
	_ = c.SetDeadline(time.Now().Add(3 * time.Second))
	buf := make([]byte, 1500)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

func (s *sandbox) call(network, addr string) (out string, err error) {
	err = s.do(func() error { out, err = call(network, addr); return err })
	return out, err
}

func wantAnswer(t testing.TB, got string, err error, want string) {
	t.Helper()
	if err != nil {
		t.Errorf("no answer: %v; want %q", err, want)
	} else if got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
}

// pod is a sandbox attached to a network.
type pod struct {
	*sandbox
	Attached
	req Request
}

func addPod(t testing.TB, c Config, id string, ports ...PortMapping) *pod {
	t.Helper()
	s := newSandbox(t)
	p := &pod{sandbox: s, req: Request{Attachment: Attachment{id, "eth0"}, Netns: s.path, Ports: ports}}
	got, err := Add(c, p.req)
	if err != nil {
		t.Fatalf("add %s: %v", id, err)
	}
	p.Attached = got
	t.Cleanup(func() { _ = Del(c, p.req) })
	return p
}

func (p *pod) ip(i int) string { return p.Addrs[i].Addr().String() }

// wantNothingLeft checks that no device, lease or host port of any pod is there.
func wantNothingLeft(t testing.TB, c Config) {
	t.Helper()
	held, err := Leases(c)
	if err != nil || len(held) != 0 {
		t.Errorf("leases left: %v, %v", held, err)
	}
	bridge, err := netlink.LinkByName(c.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	if ports, err := bridgePorts(bridge.Attrs().Index); err != nil || len(ports) != 0 {
		t.Errorf("devices left on the bridge: %v, %v", ports, err)
	}
	if ports := hostPortsOf(t, c); len(ports) != 0 {
		t.Errorf("host ports left: %v", ports)
	}
}

func hostPortsOf(t testing.TB, c Config) []held {
	t.Helper()
	tab, err := openTable(c.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.close()
	ports, err := tab.hostPorts()
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

// rules counts the rules of each chain of the network's table.
func rules(t testing.TB, c Config) map[string]int {
	t.Helper()
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	chains, err := conn.ListChains()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, ch := range chains {
		if ch.Table.Name != tablePrefix+c.Bridge {
			continue
		}
		rs, err := conn.GetRules(ch.Table, ch)
		if err != nil {
			t.Fatal(err)
		}
		out[ch.Name] = len(rs)
	}
	return out
}
