// SPDX-License-Identifier: Apache-2.0

package debugask

import "testing"

// DC-14: a user is asked for by number, and anything else is said to be none.
func TestParseUser(t *testing.T) {
	for text, want := range map[string]string{"": "", "0": "0", "1000": "1000", "1000:0": "1000:0", "65532:65532": "65532:65532", "2147483647": "2147483647"} {
		if u, err := ParseUser(text); err != nil || u.String() != want {
			t.Errorf("%q: %s, %v", text, u, err)
		}
	}
	for _, text := range []string{"root", "-1", "1:", ":1", "1:2:3", "1:staff", "2147483648", "1 ", "0x10"} {
		if u, err := ParseUser(text); err == nil || u != nil {
			t.Errorf("%q is taken for %s", text, u)
		}
	}
}
