// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/netpolicy/decide"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// patience is how long one waits for what is to come, on a machine that may be busy, and for what is not to.
func patience(comes bool) time.Duration {
	if comes {
		return 20 * time.Second
	}
	return 250 * time.Millisecond
}

// bench is a machine with a pod network, and what is decided for it.
type bench struct {
	t       testing.TB
	config  network.Config
	host    Host
	world   *decide.World
	have    State
	created time.Time
}

func newBench(t testing.TB, cidrs ...string) *bench {
	t.Helper()
	needRoot(t)
	c := network.Config{Bridge: "wbr0", StateDir: filepath.Join(t.TempDir(), "network")}
	for _, s := range cidrs {
		c.CIDRs = append(c.CIDRs, netip.MustParsePrefix(s))
	}
	if err := network.Setup(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Teardown(c); err != nil {
			t.Error(err)
		}
	})
	return &bench{t: t, config: c, host: Host{Bridge: c.Bridge, Pods: c.CIDRs}, world: decide.New(),
		created: time.Now()}
}

// bridged has what passes a bridge looked at by the inet tables, or not, as br_netfilter does where it is loaded.
func bridged(t testing.TB, on bool) {
	t.Helper()
	for _, name := range []string{"bridge-nf-call-iptables", "bridge-nf-call-ip6tables"} {
		path := "/proc/sys/net/bridge/" + name
		if _, err := os.Stat(path); err != nil && on {
			t.Skip("this kernel has no br_netfilter")
		} else if err != nil {
			continue
		}
		if err := os.WriteFile(path, []byte(map[bool]string{true: "1", false: "0"}[on]), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) namespace(name string, labels ...string) { b.world.SetNamespace(name, pairs(labels)) }

func pairs(list []string) map[string]string {
	out := map[string]string{}
	for _, l := range list {
		k, v, _ := strings.Cut(l, "=")
		out[k] = v
	}
	return out
}

// policies takes in policies as YAML, and enforces.
func (b *bench) policies(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		var p networkingv1.NetworkPolicy
		if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
			b.t.Fatal(err)
		}
		if err := b.world.SetPolicy(&p); err != nil {
			b.t.Fatal(err)
		}
	}
	b.enforce()
}

func (b *bench) enforce() {
	b.t.Helper()
	now, _, err := b.host.Make(b.have, b.world.Tables(), b.world.Touched())
	if err != nil {
		b.t.Fatal(err)
	}
	b.have = now
}

// pod is one with a network namespace.
type pod struct {
	b    *bench
	file *os.File
	is   corev1.Pod
	ips  []netip.Addr
}

// pod makes a pod NAMESPACE/NAME with labels; it is known to the world when told.
func (b *bench) pod(name string, labels ...string) *pod {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "netns")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends in the new namespace
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), path, "", unix.MS_BIND, "")
		}
		done <- err
	}()
	if err := <-done; err != nil {
		b.t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		b.t.Fatal(err)
	}
	r := network.Request{Attachment: network.Attachment{ContainerID: strings.ReplaceAll(name, "/", "-"), IfName: "eth0"},
		Netns: path}
	got, err := network.Add(b.config, r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = network.Del(b.config, r)
		f.Close()
		_ = unix.Unmount(path, unix.MNT_DETACH)
	})
	namespace, short, _ := strings.Cut(name, "/")
	b.created = b.created.Add(time.Second)
	p := &pod{b: b, file: f, is: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: short,
		UID: types.UID(name), Labels: pairs(labels), CreationTimestamp: metav1.NewTime(b.created)}}}
	for _, a := range got.Addrs {
		p.ips = append(p.ips, a.Addr())
		p.is.Status.PodIPs = append(p.is.Status.PodIPs, corev1.PodIP{IP: a.Addr().String()})
	}
	return p
}

// known tells the world of the pod.
func (p *pod) known(ports ...corev1.ContainerPort) *pod {
	p.is.Spec.Containers = []corev1.Container{{Ports: ports}}
	p.b.world.SetPod(&p.is)
	return p
}

func (p *pod) do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		err := unix.Setns(int(p.file.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// serve echoes what is sent to a port.
func (p *pod) serve(proto string, port int) *pod {
	p.b.t.Helper()
	if err := p.do(func() error { return serve(p.b.t, proto, fmt.Sprintf(":%d", port)) }); err != nil {
		p.b.t.Fatal(err)
	}
	return p
}

func serve(t testing.TB, proto, addr string) error {
	if proto == "udp" {
		c, err := net.ListenPacket(proto, addr)
		if err != nil {
			return err
		}
		t.Cleanup(func() { c.Close() })
		go func() {
			buf := make([]byte, 2000)
			for {
				n, from, err := c.ReadFrom(buf)
				if err != nil {
					return
				}
				_, _ = c.WriteTo(buf[:n], from)
			}
		}()
		return nil
	}
	l, err := net.Listen(proto, addr)
	if err != nil {
		return err
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	return nil
}

// dial connects from the calling thread's namespace, which is to succeed or not.
func dial(proto, addr string, want bool) (net.Conn, error) {
	c, err := net.DialTimeout(proto, addr, patience(want))
	if err != nil {
		return nil, err
	}
	if err := echo(c, "hello", want); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// echo says something and waits to hear it, which it is to or not.
func echo(c net.Conn, text string, want bool) error {
	_ = c.SetDeadline(time.Now().Add(patience(want)))
	if _, err := c.Write([]byte(text)); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, len(text)))
	return err
}

func (p *pod) dial(proto string, to netip.Addr, port uint16, want bool) (c net.Conn, err error) {
	err = p.do(func() error { c, err = dial(proto, netip.AddrPortFrom(to, port).String(), want); return err })
	return c, err
}

// reaches checks whether every address of another pod is reached.
func (p *pod) reaches(to *pod, proto string, port uint16, want bool) {
	p.b.t.Helper()
	for _, a := range to.ips {
		p.reachesAddr(a, proto, port, want)
	}
}

func (p *pod) reachesAddr(a netip.Addr, proto string, port uint16, want bool) {
	p.b.t.Helper()
	c, err := p.dial(proto, a, port, want)
	if c != nil {
		c.Close()
	}
	if (err == nil) != want {
		p.b.t.Errorf("%s/%s → %s %s:%d: %v, want it to pass: %v", p.is.Namespace, p.is.Name, proto, a, port, err, want)
	}
	if err != nil && !want && !os.IsTimeout(err) {
		p.b.t.Errorf("%s/%s → %s %s:%d: %v, want a timeout", p.is.Namespace, p.is.Name, proto, a, port, err)
	}
}
