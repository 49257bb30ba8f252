// SPDX-License-Identifier: Apache-2.0

package detach

import (
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

// FuzzPick chooses from a list of mounts, whose names pods choose: nothing outside of the folder, and nothing twice.
func FuzzPick(f *testing.F) {
	f.Add("36 35 98:0 / /d/a rw - fuse.sshfs x rw\n37 36 98:0 / /d/a/b rw - nfs4 x rw\n38 36 98:0 / /d/a rw - nfs x rw\n", "/d")
	f.Add("36 35 98:0 / /d\\040/a\\134 rw shared:1 - 9p x rw\n", "/d ")
	f.Add("1 2 3:4 / /dd/a rw - fuse x rw\n", "/d")
	f.Fuzz(func(t *testing.T, list, dir string) {
		mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(list), nil)
		if err != nil {
			return
		}
		out := pick(mounts, dir)
		for i, one := range out {
			if !strings.HasPrefix(one.at, dir+"/") || one.times < 1 {
				t.Errorf("%+v is picked below %q", one, dir)
			}
			for j, other := range out {
				if i != j && (one.at == other.at || strings.HasPrefix(one.at, other.at+"/")) {
					t.Errorf("%+v is picked beside %+v", one, other)
				}
			}
		}
	})
}
