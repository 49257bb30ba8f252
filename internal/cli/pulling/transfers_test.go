// SPDX-License-Identifier: Apache-2.0

package pulling

import (
	"testing"
	"time"
)

// What is fetched is added up; a part that is not under way any more is here in whole.
func TestTransfers(t *testing.T) {
	const mib = 1 << 20
	at := time.Unix(0, 0)
	var all Transfers
	if all.String() != "" {
		t.Errorf("before anything has come: %q", all.String())
	}
	for _, step := range []struct {
		now  []Transfer
		want string
	}{
		{nil, ""},
		{[]Transfer{{"a", 0, 10 * mib}, {"b", mib, 0}}, "1.0 of 11.0 MiB, 1.0 MiB/s, 0 of 2 layers"},
		{[]Transfer{{"a", 1 * mib, 10 * mib}, {"b", mib, 4 * mib}}, "2.0 of 14.0 MiB, 1.0 MiB/s, 0 of 2 layers"},
		{[]Transfer{{"a", 3 * mib, 10 * mib}, {"c", mib, 2 * mib}}, "8.0 of 16.0 MiB, 2.5 MiB/s, 1 of 3 layers"},
		{nil, "3 layers downloaded, unpacking"},
	} {
		all.See(at, step.now)
		if got := all.String(); got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
		at = at.Add(time.Second)
	}
}
