// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/runtime/network"
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// TestTune (WL-09): what is outside of a kube-proxy's defaults is set to them, and nothing else.
func TestTune(t *testing.T) {
	const wait, established = "nf_conntrack_tcp_timeout_close_wait", "nf_conntrack_tcp_timeout_established"
	for _, c := range []struct{ is, want map[string]string }{
		{map[string]string{wait: "60\n", established: "432000\n"}, map[string]string{wait: "3600", established: "86400"}},
		{map[string]string{wait: "7200\n", established: "600\n"}, map[string]string{wait: "7200\n", established: "600\n"}},
		{map[string]string{wait: "60\n"}, map[string]string{wait: "3600"}},
	} {
		folder := t.TempDir()
		for name, text := range c.is {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := tune(folder); err != nil {
			t.Error(err)
		}
		for name, want := range c.want {
			if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
				t.Errorf("%v: %s is %q, %v; want %q", c.is, name, got, err, want)
			}
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, wait), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tune(folder); err == nil || !strings.Contains(err.Error(), wait) {
		t.Errorf("nonsense in the kernel: %v", err)
	}
}

// inPod runs f in a network namespace of its own with an address of a pod network.
func inPod(t *testing.T, c network.Config, name string) (addr netip.Addr, do func(func() error)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "netns")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(enter func() error, f func() error) {
		t.Helper()
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // the thread ends in the other namespace
			err := enter()
			if err == nil {
				err = f()
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	run(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() error {
		return unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), path, "", unix.MS_BIND, "")
	})
	r := network.Request{Attachment: network.Attachment{ContainerID: name, IfName: "eth0"}, Netns: path}
	got, err := network.Add(c, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = network.Del(c, r)
		_ = unix.Unmount(path, unix.MNT_DETACH)
	})
	return got.Addrs[0].Addr(), func(f func() error) {
		t.Helper()
		run(func() error {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Setns(fd, unix.CLONE_NEWNET)
		}, f)
	}
}

// TestInvalid (WL-09): what belongs to no connection does not come to pods from beyond their network, unless the machine
// tracks connections liberally; what begins one does.
func TestInvalid(t *testing.T) {
	needRoot(t)
	networks := []network.Config{
		{Bridge: "wbr0", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24")}},
		{Bridge: "wbr1", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.245.0.0/24")}},
	}
	for i := range networks {
		networks[i].StateDir = filepath.Join(t.TempDir(), strconv.Itoa(i))
		if err := network.Setup(networks[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := network.Teardown(networks[i]); err != nil {
				t.Error(err)
			}
		})
	}
	here, inHere := inPod(t, networks[0], "here")
	_, inThere := inPod(t, networks[1], "there")

	var heard *net.IPConn
	inHere(func() (err error) {
		heard, err = net.ListenIP("ip4:tcp", nil)
		return err
	})
	defer heard.Close()
	const nobodys = 7777 // of the packet that belongs to no connection
	// first is the port of the first packet that arrives: of that one, or of a connection that is begun after it.
	first := func() int {
		t.Helper()
		const real = 7778
		inThere(func() error {
			c, err := net.DialIP("ip4:tcp", nil, &net.IPAddr{IP: here.AsSlice()})
			if err != nil {
				return err
			}
			defer c.Close()
			packet := make([]byte, 20)
			binary.BigEndian.PutUint16(packet, 4321)
			binary.BigEndian.PutUint16(packet[2:], nobodys)
			packet[12], packet[13] = 5<<4, 1|2 // SYN and FIN, which nobody sends
			if _, err := c.Write(packet); err != nil {
				return err
			}
			conn, err := net.Dial("tcp", netip.AddrPortFrom(here, real).String())
			if err == nil {
				conn.Close()
			}
			return nil // nobody listens: that the first packet comes is enough
		})
		if err := heard.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		for buffer := make([]byte, 1500); ; {
			n, _, err := heard.ReadFromIP(buffer) // without the header of IP
			if err != nil {
				t.Fatal(err)
			}
			if port := int(binary.BigEndian.Uint16(buffer[2:n])); port == nobodys || port == real {
				if port == nobodys { // the other one is still to come
					if _, _, err := heard.ReadFromIP(buffer); err != nil {
						t.Fatal(err)
					}
				}
				return port
			}
		}
	}

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{
		ClusterIP: "10.96.0.9", Ports: []corev1.ServicePort{{Port: 80}}}}
	want := decide.Merge([]*decide.Part{decide.Of(facts(), service, nil)})
	var have State
	for _, c := range []struct {
		name    string
		carries bool
		liberal bool
		want    int
	}{
		{"without services", false, false, nobodys},
		{"with services", true, false, 7778},
		{"with services, liberally", true, true, nobodys},
		{"no longer", true, false, 7778},
	} {
		host := Host{Bridge: networks[0].Bridge, Pods: networks[0].CIDRs, Liberal: c.liberal}
		if c.carries {
			var err error
			if have, _, err = host.Make(have, want); err != nil {
				t.Fatal(err)
			}
			if read, err := host.Read(); err != nil || read.Base["forward"] != have.Base["forward"] {
				t.Errorf("%s: the kernel has another chain than was made: %v", c.name, err)
			}
		}
		if got := first(); got != c.want {
			t.Errorf("%s: the first packet that came was to port %d, want %d", c.name, got, c.want)
		}
	}
	if err := (Host{Bridge: networks[0].Bridge}).Remove(); err != nil {
		t.Error(err)
	}
}
