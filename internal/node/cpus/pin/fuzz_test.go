// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"strings"
	"testing"
)

// FuzzParse: a list of CPUs is read as what it says again, and names no CPU that Linux cannot have, whatever a file of
// the kernel, a flag or a record holds (RS-07).
func FuzzParse(f *testing.F) {
	for _, list := range []string{"", "0-3,8", "0", "3-0", "16383", "16384", "0-16383", "0-99999999999", "-1", "1-", "1--2", "1-2-3", ",", " 1", "+1", "1,1,1-1", "0x1", "٣", "0-1\n"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		set, err := Parse(list)
		if err != nil {
			if !set.IsEmpty() {
				t.Errorf("%q: %v and %v", list, set, err)
			}
			return
		}
		for _, n := range set.List() {
			if n < 0 || n >= most {
				t.Errorf("%q names CPU %d", list, n)
			}
		}
		if again, err := Parse(set.String()); err != nil || !again.Equals(set) {
			t.Errorf("%q is %v, which is %v, %v", list, set, again, err)
		}
		if set.IsEmpty() && strings.ContainsAny(list, "0123456789") {
			t.Errorf("%q names none", list)
		}
	})
}
