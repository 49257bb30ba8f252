// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// BenchmarkTraffic measures what policies cost two pods of one bridge: a round trip on an open connection, and 64 KiB there and
// back. Without policies frames pass the bridge; with them they are routed and judged.
func BenchmarkTraffic(b *testing.B) {
	for _, c := range []struct {
		name     string
		policies int
	}{{"none", 0}, {"one", 1}, {"100", 100}} {
		b.Run("policies="+c.name, func(b *testing.B) { traffic(b, c.policies) })
	}
}

func traffic(b *testing.B, policies int) {
	m := newBench(b, "10.77.0.0/24")
	db := m.pod("n/db", "app=1").known().serve("tcp", 80)
	web := m.pod("n/web", "app=2").known()
	for i := range policies { // all select the server, and the last lets the client in
		peer := 3
		if i == policies-1 {
			peer = 2
		}
		p := policyFor(fmt.Sprintf("policy%03d", i), 1, peer)
		p.Spec.PolicyTypes = p.Spec.PolicyTypes[:1]
		if err := m.world.SetPolicy(p); err != nil {
			b.Fatal(err)
		}
	}
	m.enforce()
	conn, err := web.dial("tcp", db.ips[0], 80, true)
	if err != nil {
		b.Fatal(err)
	}
	_ = conn.SetDeadline(time.Time{})
	b.Run("roundtrip", func(b *testing.B) { trips(b, conn, 64) })
	b.Run("64KiB", func(b *testing.B) { trips(b, conn, 64<<10) })
	conn.Close()
}

// trips sends and waits to have it back, over and over. The median says more than the mean on a machine that others use.
func trips(b *testing.B, c net.Conn, size int) {
	out, in := make([]byte, size), make([]byte, size)
	took := make([]time.Duration, 0, b.N)
	for range b.N {
		began := time.Now()
		if size > 1<<10 {
			go func() { _, _ = c.Write(out) }() // the echo begins before all is written
		} else if _, err := c.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, in); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "µs/median")
}
