// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// difference is a file that two folders do not have alike.
type difference struct {
	Name string   `json:"name"` // escaped, below the folders
	One  *entry   `json:"one,omitempty"`
	Two  *entry   `json:"two,omitempty"`
	How  []string `json:"how,omitempty"` // kind, contents, mode, owner, target
}

// comparison is a walk through two folders at once.
type comparison struct {
	*bounds
	found   []difference
	buffers [2][]byte
}

// compare tells how two folders differ: what only one of them has, and what is not alike in both. Of a folder that only
// one has nothing more is told.
func (l *looker) compare(q question) (a answer, err error) {
	if q.With == nil {
		return a, errors.New("it is not said what to compare with")
	}
	one, where, err := l.folder(q.Root, q.Path)
	if err != nil {
		return a, err
	}
	defer unix.Close(one)
	two, _, err := l.folder(q.With.Root, q.With.Path)
	if err != nil {
		return a, err
	}
	defer unix.Close(two)
	c := &comparison{bounds: newBounds(), buffers: [2][]byte{make([]byte, 128<<10), make([]byte, 128<<10)}}
	c.walk([2]int{one, two}, "", where, 0)
	return answer{Differ: c.found, More: c.more, Notes: c.list, Visited: c.visited}, nil
}

// folder opens a folder of a root, and says where it is.
func (l *looker) folder(name, text string) (fd int, where string, err error) {
	r, at, err := l.within(name, text)
	if err != nil {
		return 0, "", err
	}
	defer r.close()
	if fd, err = r.open(at, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		return 0, "", &fs.PathError{Op: "open", Path: name + ":" + at, Err: err}
	}
	where, _ = r.kernels(fd)
	return fd, path.Join("/", where), nil
}

func (c *comparison) walk(fds [2]int, below, where string, deep int) {
	var names [2][]string
	for i, fd := range fds {
		list, more, err := namesIn(fd, mostVisited)
		if err != nil || more || deep > mostDeep {
			c.add("%s was not compared as a whole", where)
			return
		}
		names[i] = list
	}
	for len(names[0]) > 0 || len(names[1]) > 0 {
		if c.over() {
			return
		}
		name := first(names)
		at := path.Join(where, name)
		var both [2]*entry
		known := !hiddenByKernel(at)
		for i := range names {
			if len(names[i]) > 0 && names[i][0] == name {
				names[i] = names[i][1:]
				e, err := entryOf(fds[i], name)
				switch {
				case err == nil:
					both[i] = &e
				case !errors.Is(err, unix.ENOENT) && known:
					c.add("%s was not compared: %v", at, err)
					known = false
				}
			}
		}
		if known {
			c.pair(fds, both, name, path.Join(below, escape(name)), at, deep)
		}
	}
}

// first is the first name of two sorted lists.
func first(names [2][]string) string {
	switch {
	case len(names[0]) == 0:
		return names[1][0]
	case len(names[1]) == 0 || names[0][0] < names[1][0]:
		return names[0][0]
	}
	return names[1][0]
}

// pair compares what both have of a name.
func (c *comparison) pair(fds [2]int, both [2]*entry, name, below, at string, deep int) {
	one, two := both[0], both[1]
	d := difference{Name: below, One: one, Two: two}
	switch {
	case one == nil && two == nil:
		return // both have gone meanwhile
	case one == nil || two == nil:
	case one.Kind != two.Kind:
		d.How = []string{"kind"}
	default:
		if one.Kind == "f" && !(one.device == two.device && one.inode == two.inode) && !c.alike(fds, both, name, at) {
			d.How = append(d.How, "contents")
		}
		if one.To != two.To {
			d.How = append(d.How, "target")
		}
		if one.Mode != two.Mode {
			d.How = append(d.How, "mode")
		}
		if one.UID != two.UID || one.GID != two.GID {
			d.How = append(d.How, "owner")
		}
		if one.Kind == "d" {
			c.both(fds, name, below, at, deep)
		}
		if len(d.How) == 0 {
			return
		}
	}
	c.told++
	c.found = append(c.found, d)
}

// both goes on into a folder that both have.
func (c *comparison) both(fds [2]int, name, below, at string, deep int) {
	var into [2]int
	for i, fd := range fds {
		sub, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			c.add("%s was not compared: %v", at, err)
			return
		}
		defer unix.Close(sub)
		into[i] = sub
	}
	c.walk(into, below, at, deep+1)
}

// alike reports whether two files have the same contents, or that is not known and said in a note.
func (c *comparison) alike(fds [2]int, both [2]*entry, name, at string) bool {
	if both[0].Size != both[1].Size {
		return false
	}
	var files [2]*os.File
	for i, fd := range fds {
		f, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			c.add("what is in %s was not compared: %v", at, err)
			return true
		}
		files[i] = os.NewFile(uintptr(f), name)
		defer files[i].Close()
	}
	for n := both[0].Size; n > 0; {
		if c.late() {
			return true // the answer says that it is not all
		}
		a, errA := io.ReadFull(files[0], c.buffers[0])
		b, errB := io.ReadFull(files[1], c.buffers[1])
		if err := errors.Join(problem(errA), problem(errB)); err != nil {
			c.add("what is in %s was not compared: %v", at, err)
			return true
		}
		if a != b || !bytes.Equal(c.buffers[0][:a], c.buffers[1][:b]) || (errA == nil) != (errB == nil) {
			return false
		}
		if errA != nil {
			return errors.Is(errA, io.ErrUnexpectedEOF) || errors.Is(errA, io.EOF)
		}
		n -= int64(a)
	}
	return true
}

// problem is an error that is not the end of a file.
func problem(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
