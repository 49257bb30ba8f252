// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"absolute path":         {DataDir: "data"},
		"cannot be the data":    {DataDir: "/"},
		"use cgroupfs or sys":   {DataDir: "/d", CgroupDriver: "cgroup"},
		"use overlayfs, nati":   {DataDir: "/d", Snapshotter: "zfs"},
		"pod network \"10.0\"":  {DataDir: "/d", PodCIDRs: []string{"10.0"}, BridgeName: "b"},
		"1 to 15 characters":    {DataDir: "/d", PodCIDRs: []string{"10.0.0.0/24"}},
		"bridge name \"a-very-": {DataDir: "/d", PodCIDRs: []string{"10.0.0.0/24"}, BridgeName: "a-very-long-name"},
	} {
		if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", c, err, want)
		}
	}
	c, err := Config{DataDir: "/d/"}.complete()
	if err != nil || c.DataDir != "/d" || c.CgroupDriver != "cgroupfs" || c.Snapshotter != Overlayfs || c.HostsDir != "/d/registries" {
		t.Errorf("defaults: %+v (%v)", c, err)
	}
}

func TestSocketsFit(t *testing.T) {
	for _, data := range []string{"/var/lib/wherry", "/tmp/" + strings.Repeat("x", 300)} {
		d := dirsOf(data)
		if n := len(d.sockets()); n > maxSocketDir {
			t.Errorf("%s: shim sockets in %s, %d characters of %d", data, d.sockets(), n, maxSocketDir)
		}
		if n := len(d.eventSocket()); n > 106 {
			t.Errorf("%s: event socket %s is too long", data, d.eventSocket())
		}
	}
	if a, b := dirsOf("/a/"+strings.Repeat("x", 100)), dirsOf("/b/"+strings.Repeat("x", 100)); a.link == b.link {
		t.Errorf("two data folders share the short name %s", a.link)
	}
	if d := dirsOf("/var/lib/wherry"); d.link != "" {
		t.Errorf("the default data folder needs no short name, got %s", d.link)
	}
}

func TestPrepareThrowsAwayFormerBoot(t *testing.T) {
	d := dirsOf(filepath.Join(t.TempDir(), "d"))
	if d.link != "" {
		d.link = ""
	}
	if err := d.prepare("one"); err != nil {
		t.Fatal(err)
	}
	volatile, lasting := filepath.Join(d.run, "x"), filepath.Join(d.root, "x")
	for _, f := range []string{volatile, lasting} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		boot string
		kept bool
	}{{"one", true}, {"two", false}} {
		if err := d.prepare(step.boot); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(volatile); (err == nil) != step.kept {
			t.Errorf("boot %s: state of this boot kept: %v, want %v", step.boot, err == nil, step.kept)
		}
		if _, err := os.Stat(lasting); err != nil {
			t.Errorf("boot %s: lasting state: %v", step.boot, err)
		}
	}
}

// RS-07: which boot the runtime's state is of is not written again while containers of that boot may run. A server that is killed while
// it writes, or finds the disk full, would leave half of it, and the next start would take all state for that of another boot.
func TestPrepareWritesMarkOnce(t *testing.T) {
	d := dirsOf(filepath.Join(t.TempDir(), "d"))
	d.link = ""
	mark := filepath.Join(d.run, "boot-id")
	if err := errors.Join(os.MkdirAll(d.run, 0o711), os.WriteFile(mark+".new", []byte("o"), 0o600)); err != nil { // of a start that was cut off
		t.Fatal(err)
	}
	if err := d.prepare("one"); err != nil {
		t.Fatal(err)
	}
	before := time.Unix(1, 0)
	if err := os.Chtimes(mark, before, before); err != nil {
		t.Fatal(err)
	}
	if err := d.prepare("one"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(mark); err != nil || !info.ModTime().Equal(before) {
		t.Errorf("the mark was written again: %v, %v", info.ModTime(), err)
	}
}

// RS-07: a start that is cut off, or fails, while it throws away a former boot's state is made up for by the next one.
func TestPrepareIsRepeated(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("what is in the way is a mount point; it needs root")
	}
	d := dirsOf(filepath.Join(t.TempDir(), "d"))
	d.link = ""
	if err := d.prepare("one"); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(d.run, "state")
	if err := os.Mkdir(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	err := d.prepare("two")
	if uerr := unix.Unmount(state, unix.MNT_DETACH); uerr != nil {
		t.Fatal(uerr)
	}
	if err == nil {
		t.Fatal("a state that cannot be removed was passed over")
	}
	if err := d.prepare("two"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the former boot's state is kept")
	}
}

func TestLock(t *testing.T) {
	d := dirsOf(filepath.Join(t.TempDir(), "d"))
	f, err := d.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.lock(); !errors.Is(err, ErrInUse) {
		t.Errorf("second lock: %v, want ErrInUse", err)
	}
	if err := Purge(t.Context(), d.data); !errors.Is(err, ErrInUse) {
		t.Errorf("Purge: %v, want ErrInUse", err)
	}
	f.Close()
	f, err = d.lock()
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestPurgeOfNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nothing")
	if err := Purge(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("Purge made a folder")
	}
}

func TestBelow(t *testing.T) {
	disk := func(id, parent int, root, at string) *mountinfo.Info {
		return &mountinfo.Info{ID: id, Parent: parent, Major: 8, Root: root, Mountpoint: at}
	}
	mounts := []*mountinfo.Info{
		disk(1, 0, "/@", "/"),
		disk(2, 1, "/@/data", "/data"), // bound on itself
		disk(3, 2, "/@/data/x", "/data/x"),
		disk(4, 1, "/@/other/data2", "/data2"),
		{ID: 5, Parent: 3, Major: 0, Root: "/", Mountpoint: "/data/x/tmp"},
	}
	if got, want := below(mounts, "/data"), []string{"/data/x/tmp", "/data/x", "/data"}; !slices.Equal(got, want) {
		t.Errorf("unmount %q, want %q", got, want)
	}
	if got := below(mounts, "/data2"); len(got) != 0 {
		t.Errorf("unmount %q, want nothing: this bind mount is somebody's", got)
	}
}

func TestMayLowerOOMScore(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tx\nCapEff:\t000001ffffffffff\n": true,
		"Name:\tx\nCapEff:\t000001fffeffffff\n": false,
		"CapEff:\trubbish\n":                    false,
		"":                                      false,
	} {
		if got := mayLowerOOMScore(status); got != want {
			t.Errorf("%q: %v, want %v", status, got, want)
		}
	}
}

func TestParseFeatures(t *testing.T) {
	f, err := parseFeatures([]byte(`{"linux":{"seccomp":{"enabled":true},"apparmor":{"enabled":false}}}`))
	if err != nil || !f.Seccomp || f.AppArmor {
		t.Errorf("%+v (%v)", f, err)
	}
	if f, err := parseFeatures([]byte(`{"linux":{"seccomp":{"enabled":null}}}`)); err != nil || f.Seccomp {
		t.Errorf("%+v (%v)", f, err)
	}
	if _, err := parseFeatures([]byte(`runc: no`)); err == nil {
		t.Error("text was parsed")
	}
}

func TestCheckOverlay(t *testing.T) {
	if err := checkOverlay("/d", func(string) error { return nil }); err != nil {
		t.Error(err)
	}
	cause := errors.New("no such device")
	err := checkOverlay("/d", func(string) error { return cause })
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "overlayfs does not work on /d") || !strings.Contains(err.Error(), Native) {
		t.Errorf("%v, want what does not work, and what to do", err)
	}
}

// A fatal error of containerd ends the goroutine and is told; the process goes on.
func TestFatalIsCaught(t *testing.T) {
	var out bytes.Buffer
	var mute atomic.Bool
	told := make(chan error, 1)
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)), &mute, func(err error) { told <- err })
	cause := errors.New("no network folder")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.WithError(cause).WithField(logrus.ErrorKey, cause).Fatal("Failed to run CRI service")
		t.Error("Fatal returned")
	}()
	<-ended
	if err := <-told; !errors.Is(err, cause) {
		t.Errorf("told %v, want %v", err, cause)
	}
	if !strings.Contains(out.String(), "level=ERROR msg=containerd text=\"Failed to run CRI service\" err=\"no network folder\"") {
		t.Errorf("logged %q", out.String())
	}
	out.Reset()
	l.Info("not worth it")
	l.Warn(harmless[0])
	l.Error(`PullImage "a:1" failed`) // the agent says for which pod
	mute.Store(true)
	l.Error("closing")
	if out.Len() != 0 {
		t.Errorf("logged %q, want nothing", out.String())
	}
}
