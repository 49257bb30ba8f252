// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Two servers side by side, with pods of the same names in the same namespaces: different ports, bridges, networks, cgroups.
// One is killed, started, stopped and purged: the other and its pods do not notice.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	ctx := context.Background()
	stays := own(t)
	leaves, err := NewServer(ctx, world(t), ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gone := false
	t.Cleanup(func() {
		if !gone {
			if err := leaves.Purge(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	a, b := inDefault(t, stays), inDefault(t, leaves)
	const text = `
metadata: {name: web}
spec:
  containers:
  - {name: c, image: tool, args: [http], resources: {requests: {cpu: 10m}}}
  - {name: d, command: [sh, -c, IDLE]}
`
	pa, pb := a.up(text), b.up(text)
	if net.ParseIP(pa.Status.PodIP).Mask(net.CIDRMask(24, 32)).Equal(net.ParseIP(pb.Status.PodIP).Mask(net.CIDRMask(24, 32))) {
		t.Errorf("the servers share a network: %s and %s", pa.Status.PodIP, pb.Status.PodIP)
	}
	fa, err := stays.footprint()
	a.must(err)
	fb, err := leaves.footprint()
	a.must(err)
	if fa.bridge == fb.bridge || fa.cgroupRoot() == fb.cgroupRoot() {
		t.Errorf("the servers share a bridge or cgroups: %+v, %+v", fa, fb)
	}
	works := func(when string, k *kit, p *corev1.Pod) {
		t.Helper()
		now := k.Get("web")
		if facts(now) != facts(p) {
			t.Errorf("%s: the pod is %s; it was %s", when, facts(now), facts(p))
		}
		if got, err := fetch(k.ctx(), "http://"+net.JoinHostPort(p.Status.PodIP, "8080")+"/hostname"); err != nil || got != "web" {
			t.Errorf("%s: the pod answers %q (%v)", when, got, err)
		}
		k.says("web", "d", "echo here", "here")
	}
	works("at first", a, pa)
	works("at first", b, pb)

	leaves.Kill()
	works("while the other is dead", a, pa)
	a.must(leaves.Start(ctx))
	works("after the other is back", a, pa)
	works("after it is back", b, pb)
	a.must(leaves.Purge(ctx))
	gone = true
	works("after the other is purged", a, pa)
	a.Delete("web")
	a.WaitGone(pa)
}

// inDefault is a kit in the namespace default of a server, so that two servers' pods have the same names. Nothing is cleaned up
// at the test's end: the server is purged.
func inDefault(t *testing.T, s *Server) *kit {
	t.Helper()
	k := &kit{t: t, Space: &Space{Server: s, T: t, Namespace: metav1.NamespaceDefault, ctx: t.Context(),
		kubectl: s.World.Kubectls[0], seen: &seen{pods: map[types.UID]*corev1.Pod{}}}}
	k.awaitAccount()
	return k
}
