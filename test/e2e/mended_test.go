// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// TestNetworkIsMended: RS-09, the firewall table, the bridge and pods' devices are taken away under running pods, with
// the server up and with the server killed: host ports, pods among one another and the way to service kubernetes work
// again by themselves, in the pods that ran all the while. With the server up it is the kernel's notice that has it
// look: how long it took is told, not judged. ATTACK C19, C20.
func TestNetworkIsMended(t *testing.T) {
	t.Parallel()
	s := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.78.0/24", "--bind-address", "127.0.0.1"}})
	k := kitOn(t, s)
	port := strconv.Itoa(FreePort(t))
	web := k.up(`
metadata: {name: web}
spec:
  containers:
  - {name: http, image: tool, args: [http, ":8080"], ports: [{containerPort: 8080, hostPort: ` + port + `}], readinessProbe: {tcpSocket: {port: 8080}}}
`)
	k.up(`
metadata: {name: other}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	f, err := s.footprint()
	k.must(err)
	if len(f.veths) != 2 {
		t.Fatalf("devices of two pods on bridge %s: %v", f.bridge, f.veths)
	}
	works := func(after string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(k.ctx(), Timeout)
		defer cancel()
		for _, host := range []string{k.NodeIP, "127.0.0.1"} {
			if got, err := fetchUntil(ctx, "http://"+net.JoinHostPort(host, port)+"/hostname", "web"); got != "web" {
				t.Fatalf("RS-09 %s: host port %s:%s gives %q (%v)\n%s", after, host, port, got, err, s.LogTail(20))
			}
		}
		k.says("other", "c", "for i in $(seq 20); do wget -qO- http://"+web.Status.PodIP+
			":8080/hostname && break; sleep 1; done", "web")
		k.says("other", "c",
			"for i in $(seq 20); do nc -w 1 10.98.78.1 443 </dev/null >/dev/null && echo open && break; sleep 1; done",
			"open")
		if p := k.Get("web"); p.UID != web.UID || p.Status.PodIP != web.Status.PodIP ||
			p.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("RS-09 %s: the pod is %s now, before %s", after, facts(p), facts(web))
		}
	}
	works("at first")
	mended := func(what string, damage func()) {
		t.Helper()
		before := len(s.Log())
		since := time.Now()
		damage()
		works(what)
		t.Logf("%s: everything works again, and was asked for, after %s", what,
			time.Since(since).Round(time.Millisecond))
		k.restored(what, before)
	}
	table := func() {
		c, err := nftables.New()
		k.must(err)
		c.DelTable(&nftables.Table{Name: "wherry-" + f.bridge, Family: nftables.TableFamilyINet})
		k.must(c.Flush())
	}
	device := func(name string) {
		l, err := netlink.LinkByName(name)
		k.must(err)
		k.must(netlink.LinkDel(l))
	}
	mended("the table was deleted", table)
	mended("the bridge was deleted", func() { device(f.bridge) })
	mended("the pods' devices were deleted", func() { device(f.veths[0]); device(f.veths[1]) })
	k.up(`
metadata: {name: late}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	s.Kill()
	table()
	device(f.bridge)
	k.must(s.Start(context.Background()))
	works("table and bridge were deleted while the server was away")
	for _, name := range []string{"web", "other", "late"} {
		p := k.Get(name)
		k.Delete(name)
		k.WaitGone(p)
	}
}

// restored waits until the server has said, after the first bytes of its log, that a notice had it mend the network.
func (k *kit) restored(what string, after int) {
	k.t.Helper()
	for until := time.Now().Add(Timeout); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		early := false // a notice had it look in the midst of the damage
		for line := range strings.Lines(k.Log()[after:]) {
			early = early || strings.Contains(line, "cannot be repaired")
			restored := strings.Contains(line, "parts of the pod network were missing and have been restored")
			if restored && (strings.Contains(line, "trigger=notice") ||
				early && strings.Contains(line, "trigger=retry")) {
				return
			}
		}
	}
	k.t.Errorf("RS-09 %s: no notice of it had the server look:\n%s", what, k.LogTail(20))
}

// fetchUntil fetches until the answer is the one that is wanted, each time on a connection of its own. While the pod
// network is not there, somebody outside the machine may answer.
func fetchUntil(ctx context.Context, url, want string) (got string, err error) {
	for ctx.Err() == nil {
		if got, err = fetch(ctx, url); err == nil && got == want {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return got, err
}
