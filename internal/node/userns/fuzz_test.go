// SPDX-License-Identifier: Apache-2.0

package userns

import "testing"

// FuzzAllowed (PL-24): whatever /etc/subuid and /etc/subgid say, ranges are whole, in order, apart from the machine's
// own IDs and from what others have.
func FuzzAllowed(f *testing.F) {
	f.Add([]byte("ann:65536:65536\n"), []byte("ann:65536:65536\n"))
	f.Add([]byte("kubelet:131072:131072\n# x:1:2\n"), []byte("kubelet:131072:655360\nbob:4294967295:4294967295"))
	f.Add([]byte("::::\nkubelet:0:4294967295"), []byte(nil))
	f.Fuzz(func(t *testing.T, subuid, subgid []byte) {
		firsts := allowed(subuid, subgid)
		others, own := shares(subuid)
		last := uint32(0)
		for _, first := range firsts {
			if first%Length != 0 || first <= last {
				t.Fatalf("range at %d after %d", first, last)
			}
			last = first
			r := span{uint64(first), uint64(first) + Length}
			if len(own) > 0 && !r.within(own) || len(own) == 0 && r.meets(others) {
				t.Errorf("range at %d: %q", first, subuid)
			}
		}
	})
}
