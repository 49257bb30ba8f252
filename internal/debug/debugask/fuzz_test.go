// SPDX-License-Identifier: Apache-2.0

package debugask

import "testing"

// FuzzUser reads users; what is read is written in the same way.
func FuzzUser(f *testing.F) {
	for _, text := range []string{"", "0", "1000:1000", "-1", "1:", ":1", "4294967296", "+1", "1:2:3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		user, err := ParseUser(text)
		if err != nil || user == nil {
			return
		}
		again, err := ParseUser(user.String())
		if err != nil || user.UID < 0 || again.UID != user.UID || (again.GID == nil) != (user.GID == nil) || user.GID != nil && (*user.GID < 0 || *again.GID != *user.GID) {
			t.Errorf("%q: %s, then %s: %v", text, user, again, err)
		}
	})
}
