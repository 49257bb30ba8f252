// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// currentUmask reads the mask, which can only be had by setting it.
func currentUmask() uint32 {
	old := syscall.Umask(0)
	syscall.Umask(old)
	return uint32(old)
}

func basename(c *applet.Call) error {
	if err := c.Parse(1, 2); err != nil {
		return err
	}
	name := filepath.Base(c.Args[0])
	if len(c.Args) == 2 && name != c.Args[1] {
		name = strings.TrimSuffix(name, c.Args[1])
	}
	c.Println(name)
	return nil
}

func dirname(c *applet.Call) error {
	if err := c.Parse(1, 1); err != nil {
		return err
	}
	c.Println(filepath.Dir(strings.TrimRight(c.Args[0], "/") + map[bool]string{true: "/"}[strings.Trim(c.Args[0], "/") == ""]))
	return nil
}

func mkdir(c *applet.Call) error {
	parents := c.Bool("p,parents", "make the folders above, and do not mind if it is there")
	perm := c.String("m,mode", "MODE", "", "permissions, octal or as u=rwx,go=rx")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	var change func(uint32, bool) uint32
	if *perm != "" {
		var err error
		if change, err = parseMode(*perm, 0); err != nil {
			return applet.Usage("%v", err)
		}
	}
	for _, path := range c.Args {
		make := os.Mkdir
		if *parents {
			make = os.MkdirAll
		}
		err := make(path, 0o777)
		if err == nil && change != nil {
			err = os.Chmod(path, mode(change(0o777, true)))
		}
		if err != nil {
			c.Warn(err)
		}
	}
	return nil
}

func mktemp(c *applet.Call) error {
	dir := c.Bool("d,directory", "make a folder")
	in := c.String("p,tmpdir", "FOLDER", "", "folder to make it in; default $TMPDIR or /tmp")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	folder, template := *in, "tmp.XXXXXX"
	if folder == "" {
		folder = os.TempDir()
	}
	if len(c.Args) == 1 {
		template = c.Args[0]
		if *in == "" {
			folder = filepath.Dir(template)
		}
		template = filepath.Base(template)
	}
	stem := strings.TrimRight(template, "X")
	if len(template)-len(stem) < 3 {
		return applet.Usage("template %q must end in XXX or more", template)
	}
	var name string
	var err error
	if *dir {
		name, err = os.MkdirTemp(folder, stem)
	} else {
		var f *os.File
		if f, err = os.CreateTemp(folder, stem); err == nil {
			name = f.Name()
			err = f.Close()
		}
	}
	if err != nil {
		return err
	}
	c.Println(name)
	return nil
}

func pwd(c *applet.Call) error {
	physical := c.Bool("P", "without symbolic links")
	c.Do("L", "as $PWD names it (the default)", func() { *physical = false })
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err == nil && *physical {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}
	c.Println(dir)
	return nil
}

func readlink(c *applet.Call) error {
	follow := c.Bool("f,canonicalize", "follow every link on the way; the last part need not exist")
	bare := c.Bool("n,no-newline", "no line end")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	for _, path := range c.Args {
		to, err := "", error(nil)
		if *follow {
			to, err = resolve(path)
		} else {
			to, err = os.Readlink(path)
		}
		if err != nil {
			c.Failed() // without a message, as everywhere
			continue
		}
		if c.Printf("%s", to); !*bare {
			c.Println()
		}
	}
	return nil
}

func realpath(c *applet.Call) error {
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	for _, path := range c.Args {
		to, err := resolve(path)
		if err != nil {
			c.Warn(err)
			continue
		}
		c.Println(to)
	}
	return nil
}

// resolve follows the links in a path whose last part may be missing.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	to, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return to, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

func rm(c *applet.Call) error {
	recursive := c.Bool("r,recursive", "remove folders and what is in them")
	c.Do("R", "as -r", func() { *recursive = true })
	force := c.Bool("f,force", "do not mind what is not there")
	dirs := c.Bool("d,dir", "remove empty folders")
	verbose := c.Bool("v,verbose", "say what is removed")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if len(c.Args) == 0 && !*force {
		return applet.Usage("a file is missing")
	}
	for _, path := range c.Args {
		if err := remove(path, *recursive, *dirs); err != nil && !(*force && errors.Is(err, fs.ErrNotExist)) {
			c.Warn(err)
		} else if *verbose && err == nil {
			c.Printf("removed %s\n", path)
		}
	}
	return nil
}

func remove(path string, recursive, dirs bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch base := filepath.Base(path); {
	case info.IsDir() && !recursive && !dirs:
		return fmt.Errorf("%s is a folder: use -r", path)
	case recursive && (filepath.Clean(path) == "/" || base == "." || base == ".."):
		return fmt.Errorf("%s is not removed: it is the root or the folder one is in", path)
	case recursive:
		return os.RemoveAll(path)
	}
	return os.Remove(path)
}

func rmdir(c *applet.Call) error {
	parents := c.Bool("p,parents", "remove the folders above too")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	for _, path := range c.Args {
		for ; path != "." && path != "/"; path = filepath.Dir(path) {
			if err := unix.Rmdir(path); err != nil {
				c.Warn(&fs.PathError{Op: "rmdir", Path: path, Err: err})
				break
			}
			if !*parents {
				break
			}
		}
	}
	return nil
}

func ln(c *applet.Call) error {
	symbolic := c.Bool("s,symbolic", "make symbolic links")
	force := c.Bool("f,force", "replace what is there")
	plain := c.Bool("n,no-dereference", "a link to a folder is a link, not the folder")
	c.Do("T", "as -n", func() { *plain = true })
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	targets, to := c.Args, "."
	if len(targets) > 1 {
		targets, to = targets[:len(targets)-1], targets[len(targets)-1]
	}
	look := os.Stat
	if *plain {
		look = os.Lstat
	}
	info, err := look(to)
	folder := err == nil && info.IsDir()
	if len(targets) > 1 && !folder {
		return fmt.Errorf("%s is no folder", to)
	}
	for _, target := range targets {
		link := to
		if folder {
			link = filepath.Join(to, filepath.Base(target))
		}
		if *force {
			_ = os.Remove(link) // what stays is the next line's failure
		}
		make := os.Link
		if *symbolic {
			make = os.Symlink
		}
		if err := make(target, link); err != nil {
			c.Warn(err)
		}
	}
	return nil
}

func touch(c *applet.Call) error {
	never := c.Bool("c,no-create", "make no files")
	like := c.String("r,reference", "FILE", "", "take that file's time")
	at := c.String("d,date", "TIME", "", "use this time, for example 2006-01-02 15:04:05, RFC 3339 or @seconds")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	when := time.Now()
	if *like != "" {
		info, err := os.Stat(*like)
		if err != nil {
			return err
		}
		when = info.ModTime()
	}
	if *at != "" {
		var err error
		if when, err = ParseTime(*at); err != nil {
			return applet.Usage("%v", err)
		}
	}
	for _, path := range c.Args {
		err := os.Chtimes(path, when, when)
		if errors.Is(err, fs.ErrNotExist) && !*never {
			var f *os.File
			if f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666); err == nil {
				err = errors.Join(f.Close(), os.Chtimes(path, when, when))
			}
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			c.Warn(err)
		}
	}
	return nil
}

// ParseTime reads a point in time, in this machine's zone unless it names one.
func ParseTime(text string) (time.Time, error) {
	if sec, ok := strings.CutPrefix(text, "@"); ok {
		if n, err := strconv.ParseFloat(sec, 64); err == nil && math.Abs(n) < math.MaxInt64/1e9 {
			return time.Unix(0, int64(n*1e9)), nil
		}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02 15:04", time.DateOnly, "2006-01-02T15:04:05", time.RFC1123Z, time.UnixDate} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %q is not one of 2006-01-02 15:04:05, 2006-01-02T15:04:05Z, @seconds", text)
}

func truncate(c *applet.Call) error {
	text := c.String("s,size", "SIZE", "", "new size, for example 100, 4K, 2M or 1G; +SIZE adds, -SIZE subtracts")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	if *text == "" {
		return applet.Usage("-s SIZE is missing")
	}
	sign := strings.TrimLeft(*text, "0123456789KMGTkb")
	n, err := ParseSize(strings.TrimLeft(*text, "+-"))
	if err != nil {
		return applet.Usage("%v", err)
	}
	for _, path := range c.Args {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			c.Warn(err)
			continue
		}
		size := n
		if info, e := f.Stat(); e == nil && strings.HasPrefix(sign, "+") {
			size = info.Size() + n
		} else if e == nil && strings.HasPrefix(sign, "-") {
			size = max(0, info.Size()-n)
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			c.Warn(err)
		}
	}
	return nil
}

// ParseSize reads a number of bytes with K, M, G or T for powers of 1024.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGTkb")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("size %q is not as 100, 4K, 2M", text)
	}
	shift, ok := map[string]int{"": 0, "B": 9, "K": 10, "M": 20, "G": 30, "T": 40}[strings.ToUpper(text[len(digits):])]
	if !ok {
		return 0, fmt.Errorf("size %q is not as 100, 4K, 2M", text)
	}
	if n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("size %q is too large", text)
	}
	return n << shift, nil
}

func syncDisks(c *applet.Call) error {
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	unix.Sync()
	return nil
}
