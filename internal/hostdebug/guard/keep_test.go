// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"os"
	"path/filepath"
	"testing"
)

// DA-09: what is no session's name is no cgroup's either, and where there are no cgroups that is an error, for a
// session that is in its agent's would be killed with it.
func TestKeepRefuses(t *testing.T) {
	none := Machine{Cgroups: t.TempDir()}
	if err := os.Mkdir(filepath.Join(none.Cgroups, "memory"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "../../../x", "0123456789ab"} {
		if err := none.Keep(id); err == nil {
			t.Errorf("%q is kept", id)
		}
	}
	none.Leave("0123456789ab")
	none.SweepKept()
	if left, err := filepath.Glob(filepath.Join(none.Cgroups, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
}
