// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/netpolicy/decide"
	"github.com/wherryproject/wherry/internal/runtime/network"
	servicesdecide "github.com/wherryproject/wherry/internal/serviceproxy/decide"
	services "github.com/wherryproject/wherry/internal/serviceproxy/tables"
)

// both runs a test with and without the inet tables seeing what passes the bridge.
func both(t *testing.T, test func(*testing.T, *bench)) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprintf("br_netfilter=%v", on), func(t *testing.T) {
			b := newBench(t, "10.77.0.0/24", "fd00:77::/64")
			bridged(t, on)
			test(t, b)
		})
	}
}

const (
	denyIngress = `
metadata: {name: deny, namespace: a}
spec: {podSelector: {}}`
	denyAll = `
metadata: {name: deny, namespace: a}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}`
	fromWeb = `
metadata: {name: from-web, namespace: a}
spec:
  podSelector: {matchLabels: {app: db}}
  ingress: [{from: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: 80}, {port: dns, protocol: UDP}]}]`
)

// TestDenyAndAllow: WL-19, default deny, labels, numbers and names of ports, additive policies, and what is open again
// when they go; the machine always reaches its pods.
func TestDenyAndAllow(t *testing.T) {
	both(t, func(t *testing.T, b *bench) {
		b.namespace("a")
		db := b.pod("a/db", "app=db").known(corev1.ContainerPort{Name: "dns", ContainerPort: 5353,
			Protocol: corev1.ProtocolUDP}).serve("tcp", 80).serve("udp", 5353).serve("tcp", 81)
		web := b.pod("a/web", "app=web").known()
		other := b.pod("a/other").known()
		web.reaches(db, "tcp", 80, true)

		b.policies(denyIngress)
		web.reaches(db, "tcp", 80, false)
		for _, ip := range db.ips {
			c, err := dial("tcp", netip.AddrPortFrom(ip, 80).String(), true)
			if err != nil {
				t.Errorf("the machine does not reach its pod: %v", err)
			} else {
				c.Close()
			}
		}
		db.reaches(db, "tcp", 80, true)

		b.policies(fromWeb)
		web.reaches(db, "tcp", 80, true)
		web.reaches(db, "udp", 5353, true)
		web.reaches(db, "tcp", 81, false)
		other.reaches(db, "tcp", 80, false)
		other.reaches(db, "udp", 5353, false)

		web.is.Labels = nil // it is none of the web any more
		web.known()
		b.enforce()
		web.reaches(db, "tcp", 80, false)

		b.world.DropPolicy("a", "deny")
		b.enforce()
		web.reaches(db, "tcp", 80, false)
		b.world.DropPolicy("a", "from-web")
		b.enforce()
		if state, err := b.host.Read(); err != nil || state.Table {
			t.Errorf("tables are left without policies: %v, %v", state, err)
		}
		other.reaches(db, "tcp", 80, true)
	})
}

// TestEgress: WL-19, egress to pods, networks with exceptions, the machine, and the name server.
func TestEgress(t *testing.T) {
	both(t, func(t *testing.T, b *bench) {
		b.namespace("a")
		b.namespace("kube-system", "kubernetes.io/metadata.name=kube-system")
		client := b.pod("a/client").known()
		one := b.pod("b/one", "app=x").known().serve("tcp", 80).serve("udp", 80)
		two := b.pod("b/two").known().serve("tcp", 80)
		gateway := netip.MustParseAddr("10.77.0.1")
		for _, port := range []string{":5300", ":5301"} {
			if err := serve(t, "tcp", port); err != nil {
				t.Fatal(err)
			}
		}
		b.world.SetNames(&decide.Names{Asked: netip.MustParseAddrPort("10.96.0.10:53"),
			Listen: netip.AddrPortFrom(gateway, 5300)})
		b.policies(denyAll)
		client.reaches(one, "tcp", 80, false)
		client.reaches(one, "udp", 80, false)
		client.reachesAddr(gateway, "tcp", 5300, false)
		one.reaches(two, "tcp", 80, true)

		b.policies(`
metadata: {name: out, namespace: a}
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress:
  - to: [{ipBlock: {cidr: 10.77.0.0/24, except: ["` + one.ips[0].String() + `/32"]}}]
    ports: [{port: 80, endPort: 90}]
  - to: [{ipBlock: {cidr: "fd00:77::/64"}}]
  - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}]
    ports: [{port: 53, protocol: UDP}, {port: 53}]`)
		client.reachesAddr(one.ips[0], "tcp", 80, false)
		client.reachesAddr(one.ips[1], "tcp", 80, true)
		client.reaches(two, "tcp", 80, true)
		client.reachesAddr(gateway, "tcp", 5300, true)
		client.reachesAddr(gateway, "tcp", 5301, false)
	})
}

// TestUnknownPods: WL-19, while there are policies a pod that is not known yet sends and receives nothing, but for what
// the machine sends it.
func TestUnknownPods(t *testing.T) {
	both(t, func(t *testing.T, b *bench) {
		old := b.pod("a/old").known().serve("tcp", 80)
		b.policies(`
metadata: {name: elsewhere, namespace: z}
spec: {podSelector: {}}`)
		fresh := b.pod("a/fresh").serve("tcp", 80)
		fresh.reaches(old, "tcp", 80, false)
		old.reaches(fresh, "tcp", 80, false)
		fresh.known()
		b.enforce()
		fresh.reaches(old, "tcp", 80, true)
		old.reaches(fresh, "tcp", 80, true)
	})
}

// TestConnectionsEnd: WL-19, a connection that a new policy forbids gets nothing through any more, and one that it
// allows goes on, in both directions.
func TestConnectionsEnd(t *testing.T) {
	both(t, func(t *testing.T, b *bench) {
		db := b.pod("a/db", "app=db").known().serve("tcp", 80)
		web := b.pod("a/web", "app=web").known()
		other := b.pod("a/other").known()
		b.policies(`
metadata: {name: elsewhere, namespace: z}
spec: {podSelector: {}}`) // so that the kernel sees the connections begin
		var conns []net.Conn
		for _, ip := range db.ips {
			for _, from := range []*pod{web, other} {
				c, err := from.dial("tcp", ip, 80, true)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				conns = append(conns, c)
			}
		}
		b.policies(denyAll, fromWeb, `
metadata: {name: to-db, namespace: a}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}]}]}`)
		for i, c := range conns {
			if err := echo(c, "again", i%2 == 0); (err == nil) != (i%2 == 0) {
				t.Errorf("connection %d: %v", i, err)
			}
		}
	})
}

// TestForget: WL-19, a UDP flow that a new policy forbids ends once it is forgotten, also for the side that only
// answers. One that is allowed goes on, and so does the machine's own.
func TestForget(t *testing.T) {
	both(t, func(t *testing.T, b *bench) {
		db := b.pod("a/db", "app=db").known(corev1.ContainerPort{Name: "dns", ContainerPort: 5353,
			Protocol: corev1.ProtocolUDP})
		web := b.pod("a/web", "app=web").known()
		other := b.pod("a/other").known()
		b.policies(`
metadata: {name: elsewhere, namespace: z}
spec: {podSelector: {}}`) // so that the kernel sees the flows begin
		var server net.PacketConn
		if err := db.do(func() (err error) { server, err = net.ListenPacket("udp", ":5353"); return err }); err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		type flow struct {
			who  string
			conn net.Conn
			at   net.Addr // as the server sees it
			want bool
		}
		var flows []flow
		for _, ip := range db.ips {
			to := netip.AddrPortFrom(ip, 5353).String()
			for _, f := range []flow{{who: "web", want: true}, {who: "other"}, {who: "the machine", want: true}} {
				dial := func() (err error) { f.conn, err = net.Dial("udp", to); return err }
				err := map[string]func() error{"web": func() error { return web.do(dial) },
					"other": func() error { return other.do(dial) }, "the machine": dial}[f.who]()
				if err != nil {
					t.Fatal(err)
				}
				defer f.conn.Close()
				buf := make([]byte, 10)
				_ = server.SetReadDeadline(time.Now().Add(10 * time.Second))
				if _, err := f.conn.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
				if _, f.at, err = server.ReadFrom(buf); err != nil {
					t.Fatal(err)
				}
				flows = append(flows, f)
			}
		}
		hears := func(when string, f flow, want bool) {
			t.Helper()
			if _, err := server.WriteTo([]byte("hello"), f.at); err != nil && want {
				t.Errorf("%s: to %s at %s: %v", when, f.who, f.at, err)
			}
			_ = f.conn.SetReadDeadline(time.Now().Add(patience(want)))
			if _, err := f.conn.Read(make([]byte, 10)); (err == nil) != want {
				t.Errorf("%s: %s at %s hears: %v, want %v", when, f.who, f.at, err, want)
			}
		}
		b.policies(denyAll, fromWeb, `
metadata: {name: to-db, namespace: a}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}]}]}`)
		for _, f := range flows { // else there would be nothing to forget
			hears("before", f, true)
		}
		if err := b.host.Forget(func(f Flow) bool {
			return !b.world.Judge(decide.Connection{From: f.From, To: f.To.Addr(), Proto: decide.UDP,
				Port: f.To.Port()}).Allowed
		}); err != nil {
			t.Fatal(err)
		}
		for _, f := range flows {
			hears("after", f, f.want)
		}
	})
}

// TestUnseenConnections: WL-19, a connection that began before the first policy, unseen by the kernel, is reset if it
// is of a pod that is isolated now, and goes on if it is not.
func TestUnseenConnections(t *testing.T) {
	b := newBench(t, "10.77.0.0/24")
	bridged(t, false)
	db := b.pod("a/db", "app=db").known().serve("tcp", 80)
	free := b.pod("b/free").known().serve("tcp", 80)
	other := b.pod("b/other").known()
	ended, err := other.dial("tcp", db.ips[0], 80, true)
	if err != nil {
		t.Fatal(err)
	}
	defer ended.Close()
	lives, err := other.dial("tcp", free.ips[0], 80, true)
	if err != nil {
		t.Fatal(err)
	}
	defer lives.Close()
	b.policies(denyIngress)
	if err := echo(ended, "again", false); err == nil {
		t.Error("a connection of an isolated pod goes on")
	}
	if err := echo(lives, "again", true); err != nil {
		t.Errorf("a connection of free pods: %v", err)
	}
}

// TestLinkLocal: WL-19, no address that nobody has given leads around policies.
func TestLinkLocal(t *testing.T) {
	both(t, func(t *testing.T, b *bench) {
		db := b.pod("a/db").known().serve("tcp", 80)
		web := b.pod("a/web").known()
		b.policies(denyAll)
		var local string
		if err := db.do(func() (err error) { local, err = linkLocal("eth0"); return err }); err != nil {
			t.Fatal(err)
		}
		err := web.do(func() error { c, err := dial("tcp", "["+local+"%eth0]:80", false); _ = c; return err })
		if err == nil {
			t.Error("a pod is reached by its link-local address")
		}
	})
}

// linkLocal is the address that the kernel gives a device a moment after it is up.
func linkLocal(device string) (string, error) {
	updates, done := make(chan netlink.AddrUpdate, 16), make(chan struct{})
	defer close(done)
	if err := netlink.AddrSubscribe(updates, done); err != nil {
		return "", err
	}
	late := time.After(10 * time.Second)
	for {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return "", err
		}
		addrs, err := i.Addrs()
		if err != nil {
			return "", err
		}
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.IsLinkLocalUnicast() {
				return ip.IP.String(), nil
			}
		}
		select {
		case <-updates:
		case <-late:
			return "", errors.New("no link-local address")
		}
	}
}

// TestThroughServices: WL-19, who reaches a pod through a Service is judged as who reaches it directly, also a pod that
// reaches itself.
func TestThroughServices(t *testing.T) {
	both(t, func(t *testing.T, b *bench) {
		db := b.pod("a/db", "app=db").known().serve("tcp", 80).serve("udp", 80)
		web := b.pod("a/web", "app=web").known()
		other := b.pod("a/other").known()
		address := netip.MustParseAddr("10.96.7.7")
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db"}}
		s.Spec.ClusterIP, s.Spec.ClusterIPs = address.String(), []string{address.String()}
		s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 8080, Protocol: corev1.ProtocolTCP}}
		slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
			Ports:     []discoveryv1.EndpointPort{{Name: ptr.To("a"), Port: ptr.To(int32(80)), Protocol: ptr.To(corev1.ProtocolTCP)}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{db.ips[0].String()}}}}
		proxy := services.Host{Bridge: b.host.Bridge}
		part := servicesdecide.Of(servicesdecide.Facts{Pods: b.config.CIDRs}, s, []*discoveryv1.EndpointSlice{slice})
		if _, _, err := proxy.Make(services.State{}, servicesdecide.Merge([]*servicesdecide.Part{part})); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = proxy.Remove() })
		other.reachesAddr(address, "tcp", 8080, true)
		b.policies(denyAll, fromWeb, `
metadata: {name: to-db, namespace: a}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: db}}}], ports: [{port: 80}]}]}`)
		web.reachesAddr(address, "tcp", 8080, true)
		db.reachesAddr(address, "tcp", 8080, true)
		other.reachesAddr(address, "tcp", 8080, false)
	})
}

// TestTeardown: WL-19, what takes the pod network away takes the tables of policies along.
func TestTeardown(t *testing.T) {
	b := newBench(t, "10.77.0.0/24")
	b.policies(denyAll)
	if err := network.Teardown(b.config); err != nil {
		t.Fatal(err)
	}
	if state, err := b.host.Read(); err != nil || state.Table {
		t.Errorf("a table is left: %+v, %v", state, err)
	}
}
