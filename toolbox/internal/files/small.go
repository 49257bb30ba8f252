// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

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
	many := c.Bool("a,multiple", "each argument is a name")
	suffix := c.String("s,suffix", "TEXT", "", "as -a, and take this off the ends")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	if *suffix == "" && !*many {
		if len(c.Args) > 2 {
			return applet.Usage("unexpected argument %q (for several names use -a)", c.Args[2])
		}
		if len(c.Args) == 2 {
			*suffix, c.Args = c.Args[1], c.Args[:1]
		}
	}
	for _, path := range c.Args {
		name := filepath.Base(path)
		if path == "" {
			name = ""
		}
		if name != *suffix {
			name = strings.TrimSuffix(name, *suffix)
		}
		c.Println(name)
	}
	return nil
}

func dirname(c *applet.Call) error {
	if err := c.Parse(1, 1); err != nil {
		return err
	}
	if c.Args[0] == "" {
		c.Println(".")
		return nil
	}
	c.Println(filepath.Dir(strings.TrimRight(c.Args[0], "/") +
		map[bool]string{true: "/"}[strings.Trim(c.Args[0], "/") == ""]))
	return nil
}

func mkdir(c *applet.Call) error {
	parents := c.Bool("p,parents", "make the folders above, and do not mind if it is there")
	perm := c.String("m,mode", "MODE", "", "permissions, octal or as u=rwx,go=rx")
	verbose := c.Bool("v,verbose", "say what is made")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	var change func(uint32, bool) uint32
	if *perm != "" {
		var err error
		if change, err = ParseMode(*perm, 0); err != nil {
			return applet.Usage("%v", err)
		}
	}
	make := os.Mkdir
	if *verbose {
		make = func(path string, perm fs.FileMode) error {
			err := os.Mkdir(path, perm)
			if err == nil {
				c.Printf("%s: created directory '%s'\n", c.Name, path)
			}
			return err
		}
	}
	for _, path := range c.Args {
		var err error
		if *parents {
			err = makeAll(path, make)
		} else {
			err = make(path, 0o777)
		}
		if err == nil && change != nil {
			err = os.Chmod(path, mode(change(0o777, true)))
		}
		if err != nil {
			c.Warn(err)
		}
	}
	return nil
}

// makeAll makes a folder and those above it that are not there.
func makeAll(path string, make func(string, fs.FileMode) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if above := filepath.Dir(strings.TrimRight(path, "/")); above != path && above != "." {
		if err := makeAll(above, make); err != nil {
			return err
		}
	}
	err := make(path, 0o777)
	if info, e := os.Stat(path); errors.Is(err, fs.ErrExist) && e == nil && info.IsDir() {
		return nil // somebody else was faster
	}
	return err
}

func mktemp(c *applet.Call) error {
	dir := c.Bool("d,directory", "make a folder")
	in := c.String("p,tmpdir", "FOLDER", "", "folder to make it in; default $TMPDIR or /tmp")
	below := c.Bool("t", "make it in the folder for temporary files")
	dry := c.Bool("u,dry-run", "make nothing, print a name only")
	quiet := c.Bool("q,quiet", "say nothing if it fails")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	folder, template := *in, "tmp.XXXXXX"
	if folder == "" {
		folder = os.TempDir()
	}
	if len(c.Args) == 1 {
		template = c.Args[0]
		if *in == "" && !*below {
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
	if err != nil && *quiet {
		return applet.Exit(1)
	}
	if err == nil && *dry {
		err = os.Remove(name)
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
	if err := c.Parse(0, -1); err != nil {
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

func rm(c *applet.Call) error {
	recursive := c.Bool("r,recursive", "remove folders and what is in them")
	c.Do("R", "as -r", func() { *recursive = true })
	force := c.Bool("f,force", "do not mind what is not there")
	dirs := c.Bool("d,dir", "remove empty folders")
	verbose := c.Bool("v,verbose", "say what is removed")
	asks := c.Bool("i", "ask before anything is removed")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if len(c.Args) == 0 && !*force {
		return applet.Usage("missing file")
	}
	in := bufio.NewReader(c.In)
	for _, path := range c.Args {
		if _, err := os.Lstat(path); err == nil && *asks && !ask(c, in, "remove "+path) {
			continue
		}
		if err := remove(path, *recursive, *dirs); err != nil && !(*force && errors.Is(err, fs.ErrNotExist)) {
			c.Warn(err)
		} else if *verbose && err == nil {
			c.Printf("removed '%s'\n", path)
		}
	}
	return nil
}

// ask asks a question; anything but y is no.
func ask(c *applet.Call, in *bufio.Reader, what string) bool {
	_ = c.Out.Flush()
	fmt.Fprintf(c.Err, "%s: %s? ", c.Name, applet.Plain(what))
	answer, _ := in.ReadString('\n')
	answer = strings.TrimSpace(answer)
	return answer != "" && strings.ContainsRune("yY", rune(answer[0]))
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
	full := c.Bool(",ignore-fail-on-non-empty", "do not mind folders that are not empty")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	for _, path := range c.Args {
		for {
			err := unix.Rmdir(path)
			if errors.Is(err, unix.ENOTEMPTY) && *full {
				break
			}
			if err != nil {
				c.Warn(&fs.PathError{Op: "rmdir", Path: path, Err: err})
				break
			}
			path = filepath.Dir(strings.TrimRight(path, "/"))
			if !*parents || path == "." || path == "/" {
				break
			}
		}
	}
	return nil
}

func truncate(c *applet.Call) error {
	text := c.String("s,size", "SIZE", "", "new size, for example 100, 4K, 2M or 1G; +SIZE adds, -SIZE subtracts")
	never := c.Bool("c,no-create", "make no files")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	flags := os.O_CREATE | os.O_WRONLY
	if *never {
		flags = os.O_WRONLY
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
		f, err := os.OpenFile(path, flags, 0o666)
		if errors.Is(err, fs.ErrNotExist) && *never {
			continue
		}
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
	data := c.Bool("d,data", "of files: only what they hold")
	system := c.Bool("f,file-system", "the file systems on which files are")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if len(c.Args) == 0 {
		unix.Sync()
		return nil
	}
	sync := unix.Fsync
	switch {
	case *data:
		sync = unix.Fdatasync
	case *system:
		sync = unix.Syncfs
	}
	for _, path := range c.Args {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(sync(fd), unix.Close(fd))
		}
		if err != nil {
			c.Warn(&fs.PathError{Op: "sync", Path: path, Err: err})
		}
	}
	return nil
}
