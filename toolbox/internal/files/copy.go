// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// copier is one run of cp, or of mv across file systems.
type copier struct {
	recursive, keep, links, verbose, update, never, force bool
	// links that are arguments are followed
	arguments bool
	link      func(from, to string) error // in place of copying
	// asks whether a file may be replaced
	may  func(to string) bool
	say  func(format string, args ...any)
	warn func(error)
	seen map[[2]uint64]string // hard links within what is copied
}

func cp(c *applet.Call) error {
	k := &copier{say: c.Printf, warn: c.Warn, seen: map[[2]uint64]string{}}
	recursive := func() { k.recursive, k.links = true, true }
	c.Do("r,recursive", "copy folders and what is in them", recursive)
	c.Do("R", "as -r", recursive)
	c.Do("p", "keep modes, owners and times", func() { k.keep = true })
	c.Do("a,archive", "as -r -p", func() { recursive(); k.keep = true })
	c.Do("P,no-dereference", "copy links as links", func() { k.links = true })
	c.Do("d", "as -P", func() { k.links = true })
	c.Do("L,dereference", "copy what links point to", func() { k.links = false })
	c.Do("v,verbose", "say what is copied", func() { k.verbose = true })
	c.Do("u,update", "only what is newer", func() { k.update = true })
	c.Do("n,no-clobber", "replace nothing", func() { k.never = true })
	c.Do("f,force", "replace what cannot be written to", func() { k.force = true })
	c.Do("H", "follow links that are arguments", func() { k.arguments = true })
	c.Do("l,link", "make hard links, no copies", func() { k.link, k.links = os.Link, true })
	c.Do("s,symbolic-link", "make symbolic links, no copies", func() { k.link = os.Symlink })
	c.Do("i,interactive", "ask before anything is replaced", func() { k.may = asker(c) })
	parents := c.Bool(",parents", "make the folders of the names below the target")
	into := c.String("t,target-directory", "FOLDER", "", "copy into this folder")
	plain := c.Bool("T,no-target-directory", "treat the target as a file, not as a folder to copy into")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	if *parents {
		return each(c, *into, *plain, func(from, to string) error { return k.whole(from, filepath.Dir(to)) })
	}
	return each(c, *into, *plain, k.argument)
}

// asker asks on standard error and reads answers from standard input.
func asker(c *applet.Call) func(to string) bool {
	in := bufio.NewReader(c.In)
	return func(to string) bool { return ask(c, in, "replace "+to) }
}

// argument copies one that was named.
func (k *copier) argument(from, to string) error {
	if info, err := os.Stat(from); k.arguments && err == nil && info.IsDir() {
		return k.folder(from, to, info)
	}
	return k.copy(from, to)
}

// whole copies a file below a folder, with the folders of its name.
func (k *copier) whole(from, folder string) error {
	to := filepath.Join(folder, from)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	return k.argument(from, to)
}

func mv(c *applet.Call) error {
	never := c.Bool("n,no-clobber", "replace nothing")
	verbose := c.Bool("v,verbose", "say what is moved")
	var may func(string) bool
	c.Do("f,force", "do not ask (the default)", func() { may = nil })
	c.Do("i,interactive", "ask before anything is replaced", func() { may = asker(c) })
	into := c.String("t,target-directory", "FOLDER", "", "move into this folder")
	plain := c.Bool("T,no-target-directory", "treat the target as a file, not as a folder to move into")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	return each(c, *into, *plain, func(from, to string) error {
		if _, err := os.Lstat(to); err == nil && (*never || may != nil && !may(to)) {
			return nil
		}
		var err error
		if e := unix.Rename(from, to); e != nil { // as os.Rename, but an empty folder may be replaced
			err = &os.LinkError{Op: "rename", Old: from, New: to, Err: e}
		}
		if errors.Is(err, unix.EXDEV) {
			failed := false
			k := &copier{recursive: true, keep: true, links: true, say: c.Printf, seen: map[[2]uint64]string{},
				warn: func(err error) { failed = true; c.Warn(err) }}
			if err = k.copy(from, to); err == nil && !failed {
				err = os.RemoveAll(from)
			}
		}
		if err == nil && *verbose {
			c.Printf("renamed '%s' -> '%s'\n", from, to)
		}
		return err
	})
}

// each finds out what the target is and calls f for every source.
func each(c *applet.Call, into string, plain bool, f func(from, to string) error) error {
	sources, to := c.Args, into
	if into == "" {
		if len(c.Args) < 2 {
			return applet.Usage("missing target")
		}
		sources, to = c.Args[:len(c.Args)-1], c.Args[len(c.Args)-1]
	}
	info, err := os.Stat(to)
	folder := err == nil && info.IsDir() && !plain
	if !folder && (len(sources) > 1 || into != "" || strings.HasSuffix(to, "/") && err == nil) {
		return fmt.Errorf("%s is not a folder", to)
	}
	for _, from := range sources {
		target := to
		if folder {
			target = filepath.Join(to, filepath.Base(from))
		}
		if err := f(from, target); err != nil {
			c.Warn(err)
		}
	}
	return nil
}

// copy copies one thing; what fails below a folder is reported to warn.
func (k *copier) copy(from, to string) error {
	look := os.Stat
	if k.links {
		look = os.Lstat
	}
	info, err := look(from)
	if err != nil {
		return err
	}
	old, err := os.Stat(to)
	if err == nil {
		switch {
		case os.SameFile(info, old) && info.Mode()&fs.ModeSymlink == 0:
			return fmt.Errorf("%s and %s are the same file", from, to)
		case k.never && !info.IsDir(), k.update && !info.IsDir() && !info.ModTime().After(old.ModTime()):
			return nil
		case old.IsDir() && !info.IsDir():
			return fmt.Errorf("%s is a folder, %s is none", to, from)
		case k.may != nil && !info.IsDir() && !k.may(to):
			return nil
		}
	}
	if info.IsDir() {
		return k.folder(from, to, info)
	}
	if k.verbose {
		k.say("'%s' -> '%s'\n", from, to)
	}
	if k.link != nil {
		if k.force {
			_ = os.Remove(to) // what stays is the next line's failure
		}
		return k.link(from, to)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 && k.keep {
		id := [2]uint64{st.Dev, st.Ino}
		if first, ok := k.seen[id]; ok {
			_ = os.Remove(to)
			return os.Link(first, to)
		}
		k.seen[id] = to
	}
	if err := k.one(from, to, info); err != nil {
		return err
	}
	return k.attributes(to, info)
}

func (k *copier) folder(from, to string, info fs.FileInfo) error {
	if !k.recursive {
		return fmt.Errorf("%s is a folder: use -r", from)
	}
	inside, err := filepath.Abs(to)
	above, err2 := filepath.Abs(from)
	if err == nil && err2 == nil && strings.HasPrefix(inside+"/", above+"/") {
		return fmt.Errorf("%s cannot be copied into itself", from)
	}
	if err := os.Mkdir(to, info.Mode().Perm()|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := k.copy(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			k.warn(err)
		}
	}
	return k.attributes(to, info)
}

// one copies what is no folder.
func (k *copier) one(from, to string, info fs.FileInfo) error {
	st, _ := info.Sys().(*syscall.Stat_t)
	switch m := info.Mode(); {
	case m&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.Symlink(target, to)
	case !m.IsRegular() && k.recursive && st != nil:
		if err := unix.Mknod(to, st.Mode, int(st.Rdev)); err != nil {
			return &fs.PathError{Op: "mknod", Path: to, Err: err}
		}
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	if err != nil && k.force {
		_ = os.Remove(to)
		out, err = os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) // uses copy_file_range
	return errors.Join(err, out.Close())
}

func (k *copier) attributes(to string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !k.keep || !ok {
		return nil
	}
	_ = os.Lchown(to, int(st.Uid), int(st.Gid)) // needs privilege; as cp does, go on without
	if info.Mode()&fs.ModeSymlink == 0 {
		if err := os.Chmod(to, info.Mode()); err != nil {
			return err
		}
	}
	times := []unix.Timespec{{Sec: st.Atim.Sec, Nsec: st.Atim.Nsec}, {Sec: st.Mtim.Sec, Nsec: st.Mtim.Nsec}}
	return unix.UtimesNanoAt(unix.AT_FDCWD, to, times, unix.AT_SYMLINK_NOFOLLOW)
}
