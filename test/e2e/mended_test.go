// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// TestNetworkIsMended: RS-09, the firewall table, the bridge and pods' devices are taken away under running pods, with the server up and
// with the server killed: host ports, pods among one another and the way to service kubernetes work again by themselves, in the pods
// that ran all the while.
// ATTACK C19, C20.
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
	// Shorter than the time after which the server looks without a notice.
	const patience = 45 * time.Second
	works := func(after string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(k.ctx(), patience)
		defer cancel()
		for _, host := range []string{k.NodeIP, "127.0.0.1"} {
			if got, err := fetchUntil(ctx, "http://"+net.JoinHostPort(host, port)+"/hostname", "web"); got != "web" {
				t.Fatalf("RS-09 %s: host port %s:%s gives %q (%v)\n%s", after, host, port, got, err, s.LogTail(20))
			}
		}
		k.says("other", "c", "for i in $(seq 20); do wget -qO- http://"+web.Status.PodIP+":8080/hostname && break; sleep 1; done", "web")
		k.says("other", "c", "for i in $(seq 20); do nc -w 1 10.98.78.1 443 </dev/null >/dev/null && echo open && break; sleep 1; done", "open")
		if p := k.Get("web"); p.UID != web.UID || p.Status.PodIP != web.Status.PodIP || p.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("RS-09 %s: the pod is %s now, before %s", after, facts(p), facts(web))
		}
	}
	works("at first")
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
	table()
	works("the table was deleted")
	device(f.bridge)
	works("the bridge was deleted")
	device(f.veths[0])
	device(f.veths[1])
	works("the pods' devices were deleted")
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

// fetchUntil fetches until the answer is the one that is wanted, each time on a connection of its own. While the pod network is not there,
// somebody outside the machine may answer.
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
