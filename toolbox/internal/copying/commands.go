// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// notThere is the exit code when the path to copy, or the folder to copy into, does not exist.
const notThere = 3

// Applets returns the package's commands.
func Applets() []applet.Applet {
	return []applet.Applet{
		{Name: "cp-look", Usage: "[--base FOLDER]",
			Short: "Answer questions about files below FOLDER, which has a container's root in each folder (default: /c): " +
				"a line of JSON each on standard input, answers on standard output", Run: look},
		{Name: "cp-pack", Usage: "--root FOLDER PATH",
			Short: "Write a tar archive of PATH, as seen with FOLDER as root, to standard output; " +
				"its last part may be a pattern (*.log); exit code 3: PATH does not exist", Run: pack},
		{Name: "cp-unpack", Usage: "--root FOLDER PATH",
			Short: "Read a tar archive from standard input into PATH, as seen with FOLDER as root; " +
				"exit code 3: PATH does not exist", Run: unpack},
	}
}

// exists gives the failures that mean "not there" their exit code.
func exists(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return applet.Fail(notThere, "%s does not exist", path)
	case errors.Is(err, unix.ENOTDIR):
		return applet.Fail(notThere, "%s does not exist: something on the way is not a folder", path)
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

func pack(c *applet.Call) error {
	rootPath := c.String(",root", "FOLDER", "/", "what to take for /")
	total := c.Bool(",total", "say first on standard error how many bytes the files have: total N")
	follow := c.Bool(",follow", "if PATH is a link, pack what it leads to under PATH's name")
	after := c.String(",after", "REACHED", "",
		"pack what comes after OFFSET:SIZE:NANOSECONDS:NAME: bytes of an entry that have come, "+
			"its size and its time as they were")
	if err := c.Parse(1, 1); err != nil {
		return err
	}
	if c.Args[0] == "" {
		return applet.Usage("the path is empty")
	}
	var reached *Reached
	if *after != "" {
		r, err := ParseReached(*after)
		if err != nil {
			return applet.Usage("--after %v", err)
		}
		reached = &r
	}
	r, err := openRoot(*rootPath)
	if err != nil {
		return err
	}
	defer r.close()
	find := r.find
	if *follow {
		find = r.findFollowed
	}
	dir, found, err := find(c.Args[0])
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	kernels := r.kernelsIn(dir, found)
	if *total {
		fmt.Fprintf(c.Err, "total %d\n", sizeOf(dir, found, kernels))
	}
	out := bufio.NewWriterSize(c.Out, 1<<20)
	p := NewPacker(out)
	p.Problem, p.After = c.Warn, reached
	p.Skip = func(name string, _ fs.FileInfo) bool { return kernels(name) }
	p.Note = func(note string) { fmt.Fprintf(c.Err, "%s: %s\n", c.Name, note) }
	for _, f := range found {
		if err := p.add(dir, f.base, f.name); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
	}
	return errors.Join(p.Close(), out.Flush())
}

func unpack(c *applet.Call) error {
	rootPath := c.String(",root", "FOLDER", "/", "what to take for /")
	mine := c.Bool(",no-owner", "files belong to who unpacks them")
	if err := c.Parse(1, 1); err != nil {
		return err
	}
	u, err := NewUnpacker(*rootPath, c.Args[0])
	var where *fs.PathError
	if errors.As(err, &where) && where.Path == c.Args[0] {
		return exists(where.Path, where.Err)
	}
	if err != nil {
		return err
	}
	defer u.Close()
	u.Owners, u.Careful = !*mine, true
	if err := u.seen(); err != nil {
		return err
	}
	in := bufio.NewReaderSize(c.In, 256<<10)
	archive := tar.NewReader(in)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if err := u.Put(h, archive); err != nil {
			if Hopeless(err) {
				return err
			}
			c.Warn(err)
		}
	}
	if err := u.Finish(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // so that who writes is not hit by a closed pipe
	return err
}
