// SPDX-License-Identifier: Apache-2.0

package evict

import "testing"

// FuzzThresholds reads the flags of eviction.
func FuzzThresholds(f *testing.F) {
	f.Add("memory.available", "100Mi", "5%", "1m30s", "10%")
	f.Add("nodefs.available", "NaN%", "1e9999", "-1s", "0x1p-2%")
	f.Add("pid.available", "Inf%", "-0%", "9999999h", "1n")
	f.Fuzz(func(t *testing.T, signal, hard, soft, grace, reclaim string) {
		all, err := Parse(Flags{Hard: map[string]string{signal: hard}, Soft: map[string]string{signal: soft},
			SoftGrace: map[string]string{signal: grace}, Reclaim: map[string]string{signal: reclaim}})
		if err != nil {
			return
		}
		for _, one := range all {
			for _, a := range []Amount{one.Least, one.Reclaim} {
				if !(a.Share >= 0 && a.Share <= 1) || a.Value < 0 || a.Of(1<<40) < 0 {
					t.Errorf("%+v of %q, %q, %q", one, hard, soft, reclaim)
				}
			}
			if one.Soft && one.Grace <= 0 {
				t.Errorf("%q: %+v", grace, one)
			}
		}
	})
}
