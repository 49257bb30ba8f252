// SPDX-License-Identifier: Apache-2.0

package detach

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/test/hangfs"
)

// RS-08: only what is remote and below the folder is picked, and nothing that lies behind another one.
func TestPick(t *testing.T) {
	var mounts []*mountinfo.Info
	for _, line := range []string{"/d ext4", "/d/a fuse.sshfs", "/d/a/x tmpfs", "/d/a/y nfs", "/d/b tmpfs", "/d/b/n nfs4", "/d/b/n nfs4", "/data nfs", "/d/late/n nfs", "/d/late fuse"} {
		at, kind, _ := strings.Cut(line, " ")
		mounts = append(mounts, &mountinfo.Info{Mountpoint: at, FSType: kind})
	}
	want := "[{/d/a 1 true} {/d/b/n 2 false} {/d/late 1 true}]"
	if got := fmt.Sprint(pick(mounts, "/d")); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// RS-08: a file system that does not answer is detached, also where something is mounted on a folder of it; what the mount was shared with
// keeps that.
func TestRemote(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	dir := t.TempDir()
	host, volume := filepath.Join(dir, "host"), filepath.Join(dir, "pod", "volume")
	for _, d := range []string{host, volume} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := hangfs.Mount(host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fs.End)
	mount := func(from, to, kind string, flags uintptr) {
		t.Helper()
		if err := unix.Mount(from, to, kind, flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	mount("", host, "", unix.MS_SHARED)
	mount(host, volume, "", unix.MS_BIND)
	mount("inner", filepath.Join(host, "dir"), "tmpfs", 0) // seen at both
	fs.Hang()
	if err := Remote(filepath.Join(dir, "pod")); err != nil {
		t.Fatal(err)
	}
	left, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, m := range left {
		at = append(at, strings.TrimPrefix(m.Mountpoint, dir))
	}
	if got := fmt.Sprint(at); got != "[/host /host/dir]" {
		t.Errorf("mounted still: %s", got)
	}
}
