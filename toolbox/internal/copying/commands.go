// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

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
	keep := c.String(",keep", "TOKEN", "", "the archive comes in frames; if it is cut off, what is there of its "+
		"last file is kept for a call with the same TOKEN. PATH may be a name in a folder. "+
		"Standard output says which it is, and how far the archive has come")
	if err := c.Parse(1, 1); err != nil {
		return err
	}
	var k *kept
	if *keep != "" {
		if err := checkToken(*keep); err != nil {
			return applet.Usage("--keep %v", err)
		}
		k = &kept{token: *keep, say: func(line string) {
			c.Println(line)
			_ = c.Out.Flush() // a sender who is gone does not hear it
		}}
	}
	u, into, err := openTarget(*rootPath, c.Args[0], k != nil)
	if err != nil {
		return err
	}
	defer u.Close()
	u.Owners, u.Careful, u.kept = !*mine, true, k
	if err := u.seen(); err != nil {
		return err
	}
	var in io.Reader = c.In
	if k != nil {
		k.say(greeting + into)
		in = &frames{from: c.In}
	}
	return u.all(c, bufio.NewReaderSize(in, 256<<10))
}

// greeting is the first word to a sender: the version of the protocol. What follows it says what PATH is.
const (
	greeting   = "wherry-copy 1 "
	intoFolder = "folder"
	intoName   = "name" // in a folder
)

// openTarget opens the folder to unpack into. With named, a path that does not exist, and has no slash at its end, may
// be a name in one.
func openTarget(rootPath, text string, named bool) (u *Unpacker, into string, err error) {
	r, err := openRoot(rootPath)
	if err != nil {
		return nil, "", err
	}
	into = intoFolder
	u, err = newUnpacker(r, text)
	if named && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)) {
		if strings.HasSuffix(text, "/") {
			err = applet.Exit(notThere) // who asks knows which folder that is
		} else {
			into, text = intoName, path.Dir(text)
			u, err = newUnpacker(r, text)
		}
	}
	if err == nil {
		return u, into, nil
	}
	r.close()
	if where, is := errors.AsType[*fs.PathError](err); is {
		err = exists(where.Path, where.Err)
	}
	return nil, "", err
}

// all unpacks an archive.
func (u *Unpacker) all(c *applet.Call, in io.Reader) error {
	archive := tar.NewReader(in)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if errors.Is(err, errCalledOff) {
			return applet.Exit(1)
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		err = u.Put(h, archive)
		if u.kept != nil {
			u.kept.passed(err)
		}
		switch {
		case errors.Is(err, errCalledOff):
			return applet.Exit(1)
		case Hopeless(err):
			return err
		case err != nil:
			c.Warn(err)
		}
	}
	if err := u.Finish(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in) // so that who writes is not hit by a closed pipe
	return err
}
