// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func readlink(c *applet.Call) error {
	follow := c.Bool("f,canonicalize", "follow every link on the way; the last part need not exist")
	bare := c.Bool("n,no-newline", "no line end")
	c.Do("q,quiet", "say nothing of failures (the default)", func() {})
	c.Do("s,silent", "as -q", func() {})
	all := c.Bool("e,canonicalize-existing", "as -f, and the last part must exist")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	for _, path := range c.Args {
		to, err := "", error(nil)
		switch {
		case *all && path != "":
			if to, err = filepath.EvalSymlinks(path); err == nil {
				to, err = filepath.Abs(to)
			}
		case *follow || *all:
			to, err = resolve(path)
		default:
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

// resolve follows the links in a path whose last part, or what that points to, may be missing.
func resolve(path string) (string, error) {
	if path == "" {
		return "", &fs.PathError{Op: "lstat", Path: path, Err: fs.ErrNotExist}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range 40 { // as many links as the kernel follows
		to, err := filepath.EvalSymlinks(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return to, err
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, filepath.Base(path))
		if to, err = os.Readlink(path); err != nil {
			return path, nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", &fs.PathError{Op: "lstat", Path: path, Err: unix.ELOOP}
}

func ln(c *applet.Call) error {
	symbolic := c.Bool("s,symbolic", "make symbolic links")
	force := c.Bool("f,force", "replace what is there")
	plain := c.Bool("n,no-dereference", "a link to a folder is a link, not the folder")
	c.Do("T", "as -n", func() { *plain = true })
	backup := c.Bool("b", "keep what is replaced, as FILE~")
	verbose := c.Bool("v,verbose", "say what is made")
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
		return fmt.Errorf("%s is not a folder", to)
	}
	for _, target := range targets {
		link := to
		if folder {
			link = filepath.Join(to, filepath.Base(target))
		}
		if *backup {
			if err := os.Rename(link, link+"~"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				c.Warn(err)
				continue
			}
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
		} else if *verbose {
			c.Printf("'%s' %s '%s'\n", link, map[bool]string{false: "=>", true: "->"}[*symbolic], target)
		}
	}
	return nil
}
