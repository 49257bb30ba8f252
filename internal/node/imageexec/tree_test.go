// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/mountfd"
)

// yard is a folder for trees, and one to make containers' files in.
type yard struct {
	t          *testing.T
	base, node string
}

func newYard(t *testing.T) *yard {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("trees are made of mounts; that needs root")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{t, filepath.Join(dir, "base"), filepath.Join(dir, "node")}
	y.must(makeBase(y.base))
	y.must(makeBase(y.base)) // as the next start does
	t.Cleanup(func() { y.must(unix.Unmount(y.base, 0)) })
	return y
}

func (y *yard) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

// file makes a file on the node.
func (y *yard) file(path, text string) string {
	y.t.Helper()
	full := filepath.Join(y.node, path)
	y.must(os.MkdirAll(filepath.Dir(full), 0o755))
	y.must(os.WriteFile(full, []byte(text), 0o644))
	return full
}

// tree makes a tree that is taken away at the test's end.
func (y *yard) tree(name string) *tree {
	y.t.Helper()
	t, err := makeTree(filepath.Join(y.base, name))
	y.must(err)
	y.t.Cleanup(func() { y.must(removeTree(t.dir)) })
	return t
}

// files is a container whose root filesystem is mounted (bound, here) on the node.
func (y *yard) files(binds ...Bind) Files {
	y.t.Helper()
	root := filepath.Join(y.node, "mounted")
	y.must(os.MkdirAll(root, 0o755))
	y.must(unix.Mount(filepath.Join(y.node, "root"), root, "", unix.MS_BIND, ""))
	y.t.Cleanup(func() { y.must(unix.Unmount(root, unix.MNT_DETACH)) })
	return Files{Root: root, RootMounted: func() bool { return true }, Binds: binds}
}

func (y *yard) reads(path, want string) {
	y.t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		y.t.Errorf("%s: %q, %v; want %q", path, got, err, want)
	}
}

func (y *yard) refuses(path string) {
	y.t.Helper()
	if err := os.WriteFile(path, nil, 0o644); !errors.Is(err, unix.EROFS) {
		y.t.Errorf("writing %s: %v", path, err)
	}
}

// TestTree: IX-04: root filesystem and volumes in their places; read-only all the way down unless they are to be writable.
func TestTree(t *testing.T) {
	y := newYard(t)
	y.file("root/etc/name", "root's")
	y.file("root/data/hidden", "")
	y.file("root/conf/one", "")
	y.must(os.Symlink("/etc", filepath.Join(y.node, "root/link")))
	y.must(os.MkdirAll(filepath.Join(y.node, "root/link2"), 0o755))
	y.file("vol/file", "volume's")
	y.must(os.MkdirAll(filepath.Join(y.node, "vol/deep"), 0o755))
	y.must(unix.Mount("deep", filepath.Join(y.node, "vol/deep"), "tmpfs", 0, ""))
	t.Cleanup(func() { y.must(unix.Unmount(filepath.Join(y.node, "vol/deep"), 0)) })
	y.file("vol/deep/file", "deep")
	one := y.file("one", "single")
	// Where the binds go is a link in the container's root, to /etc of the container and not of the node.
	f := y.files(Bind{From: filepath.Join(y.node, "vol"), At: "/data", Recursive: true}, Bind{From: one, At: "/conf/one", ReadOnly: true},
		Bind{From: one, At: "/link/name"}, Bind{From: one, At: "/dev/termination-log"}, Bind{From: filepath.Join(y.node, "released"), At: "/gone"},
		Bind{From: one, At: "/nowhere/name"})

	for _, writable := range []bool{false, true} {
		tree := y.tree(map[bool]string{false: "ro", true: "rw"}[writable])
		notes, err := tree.show(t.Context(), "main", f, writable)
		y.must(err)
		c := filepath.Join(tree.files(), "main")
		y.reads(c+"/data/file", "volume's")
		y.reads(c+"/data/deep/file", "deep")
		y.reads(c+"/conf/one", "single")
		y.reads(c+"/etc/name", "single") // the link led there
		if text := strings.Join(notes, "\n"); len(notes) != 2 || !strings.Contains(text, "main: /gone is not shown: it is no longer on the node") || !strings.Contains(text, "/nowhere/name is not shown: its mount point cannot be found") {
			t.Errorf("notes: %q", notes)
		}
		y.refuses(c + "/conf/one")
		if writable {
			y.must(os.WriteFile(c+"/new", []byte("n"), 0o644))
			y.must(os.WriteFile(c+"/data/deep/new", []byte("d"), 0o644))
			y.reads(filepath.Join(y.node, "root/new"), "n")
			y.reads(filepath.Join(y.node, "vol/deep/new"), "d")
			continue
		}
		y.refuses(c + "/new")
		y.refuses(c + "/data/new")
		y.refuses(c + "/data/deep/new")
		y.refuses(c + "/etc/name")
	}
	y.reads(filepath.Join(y.node, "root/etc/name"), "root's")
	if err := os.WriteFile(filepath.Join(y.node, "vol/deep/file"), []byte("deep"), 0o644); err != nil {
		t.Errorf("the node's own mount has become read-only: %v", err)
	}
}

// TestTreeReadOnlyRoot: IX-04: what the container itself cannot write to is not writable for the command either.
func TestTreeReadOnlyRoot(t *testing.T) {
	y := newYard(t)
	y.file("root/etc/name", "")
	f := y.files()
	f.ReadOnlyRoot = true
	tree := y.tree("s")
	_, err := tree.show(t.Context(), "main", f, true)
	y.must(err)
	y.refuses(filepath.Join(tree.files(), "main/new"))
}

// TestTreeOfTheDead: IX-09: the layers are mounted when nothing else has them mounted any more, also when that comes to be so in
// between; IX-10: and when they cannot be, the container is left out.
func TestTreeOfTheDead(t *testing.T) {
	y := newYard(t)
	y.file("root/etc/name", "last")
	mount := func(at string, writable bool) error {
		return unix.Mount(filepath.Join(y.node, "root"), at, "", unix.MS_BIND, "")
	}
	for name, mounted := range map[string]func() bool{
		"dead": func() bool { return false },
		"dies": func() func() bool { n := 0; return func() bool { n++; return n == 1 } }(),
	} {
		f := y.files()
		f.RootMounted, f.MountRoot = mounted, mount
		tree := y.tree(name)
		_, err := tree.show(t.Context(), "main", f, false)
		y.must(err)
		y.reads(filepath.Join(tree.files(), "main/etc/name"), "last")
	}
	tree := y.tree("gone")
	_, err := tree.show(t.Context(), "main", Files{RootMounted: func() bool { return false }, MountRoot: func(string, bool) error { return errors.New("no layers") }}, false)
	if err == nil || !strings.Contains(err.Error(), "no layers") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(tree.files(), "main")); !os.IsNotExist(err) {
		t.Errorf("an empty folder for a container that is left out: %v", err)
	}
}

// TestRetry: RS-06: a walk that the kernel gives up again and again is not asked for for ever, and not once for a client that has gone.
func TestRetry(t *testing.T) {
	calls := 0
	renamed := func() (int, error) { calls++; return -1, unix.EAGAIN }
	tries := 5
	if _, err := mountfd.Retry(t.Context(), &tries, renamed); !errors.Is(err, mountfd.ErrRestless) || calls != 6 {
		t.Errorf("%v after %d calls", err, calls)
	}
	// The next path of the same container costs one call.
	if _, err := mountfd.Retry(t.Context(), &tries, renamed); !errors.Is(err, mountfd.ErrRestless) || calls != 7 {
		t.Errorf("%v after %d calls", err, calls)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := mountfd.Retry(gone, &tries, renamed); !errors.Is(err, context.Canceled) || calls != 7 {
		t.Errorf("%v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tries = 1 << 30
	if _, err := mountfd.Retry(ctx, &tries, func() (int, error) { cancel(); return -1, unix.EAGAIN }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestRemoveTree: IX-05: a session's folder goes with its mounts, and nothing of the node goes with it: not even by a crash
// before the mounts were parted from the node's.
func TestRemoveTree(t *testing.T) {
	y := newYard(t)
	y.file("root/etc/name", "kept")
	shared := filepath.Join(y.node, "shared")
	y.must(os.MkdirAll(shared, 0o755))
	y.must(unix.Mount("shared", shared, "tmpfs", 0, ""))
	y.must(unix.Mount("", shared, "", unix.MS_SHARED, ""))
	y.must(os.Mkdir(filepath.Join(shared, "below"), 0o755))
	y.must(unix.Mount("below", filepath.Join(shared, "below"), "tmpfs", 0, ""))
	t.Cleanup(func() { y.must(errors.Join(unix.Unmount(filepath.Join(shared, "below"), 0), unix.Unmount(shared, 0))) })
	tree := y.tree("s")
	crashed := filepath.Join(tree.files(), "half")
	y.must(os.Mkdir(crashed, 0o755))
	y.must(unix.Mount(shared, crashed, "", unix.MS_BIND|unix.MS_REC, ""))
	y.must(removeTree(tree.dir))
	y.must(removeTree(tree.dir))
	if below, err := mountinfo.Mounted(filepath.Join(shared, "below")); err != nil || !below {
		t.Errorf("the node's own mount was taken away with the tree's: %v", err)
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(tree.dir))
	if err != nil || len(mounts) > 0 {
		t.Errorf("left: %v, %v", mounts, err)
	}
	y.must(os.MkdirAll(filepath.Join(tree.dir, "not", "empty"), 0o755))
	if err := removeTree(tree.dir); err == nil {
		t.Error("a folder with something in it was removed")
	}
	y.must(os.RemoveAll(tree.dir))
}

// TestTreeOfTheImage: UI-06: the files of a container's image are beside what is known of the container; that they cannot
// be had is noted, and keeps nothing else away.
func TestTreeOfTheImage(t *testing.T) {
	y := newYard(t)
	y.file("root/etc/name", "the container's")
	y.file("image/etc/name", "the image's")
	f := y.files()
	f.MountImage = func(at string) error {
		return unix.Mount(filepath.Join(y.node, "image"), at, "", unix.MS_BIND, "")
	}
	tree := y.tree("s")
	_, err := tree.show(t.Context(), "main", f, false)
	y.must(err)
	y.reads(filepath.Join(tree.known("main"), "image/etc/name"), "the image's")
	y.reads(filepath.Join(tree.files(), "main/etc/name"), "the container's")

	f.MountImage = func(string) error { return errors.New("no layers") }
	tree = y.tree("none")
	notes, err := tree.show(t.Context(), "main", f, false)
	y.must(err)
	if len(notes) != 1 || !strings.Contains(notes[0], "the files of its image are not shown: no layers") {
		t.Errorf("notes: %q", notes)
	}
	y.reads(filepath.Join(tree.files(), "main/etc/name"), "the container's")
	if _, err := os.Stat(filepath.Join(tree.known("main"), "image")); !os.IsNotExist(err) {
		t.Errorf("an empty folder for an image that is left out: %v", err)
	}
}
