// SPDX-License-Identifier: Apache-2.0

package numa

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzParseDistances: there is a distance to each node of the machine and to no other, in order, or none at all (RS-07).
func FuzzParseDistances(f *testing.F) {
	for _, line := range []string{"10 21\n", "10", "", "10 -1", "10 99999999999999999999", "10  21\t", "10 0x1", "a b"} {
		f.Add(line, uint64(3))
		f.Add(line, uint64(1<<63|1))
	}
	f.Fuzz(func(t *testing.T, line string, nodes uint64) {
		got, err := ParseDistances(line, Mask(nodes))
		if err != nil {
			return
		}
		var again []string
		for _, n := range Mask(nodes).Nodes() {
			if d, ok := got[n]; !ok || d < 0 {
				t.Errorf("%q: to node %d %d", line, n, d)
			}
			again = append(again, fmt.Sprint(got[n]))
		}
		same, err := ParseDistances(strings.Join(again, " "), Mask(nodes))
		if err != nil || fmt.Sprint(same) != fmt.Sprint(got) || len(got) != len(again) {
			t.Errorf("%q is %v, and %q %v, %v", line, got, again, same, err)
		}
		if a := (Distances{0: got}).average(Mask(nodes)); a < 0 {
			t.Errorf("%q: on average %v", line, a)
		}
	})
}
