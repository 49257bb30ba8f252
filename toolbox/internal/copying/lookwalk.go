// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mostVisited is how many files are looked at for one answer, and mostTold how many are told of.
	mostVisited = 300_000
	mostTold    = 2_000
	// mostTime is how long it may take: whoever asks waits.
	mostTime = 30 * time.Second
	// mostDeep is how deep folders are gone into.
	mostDeep = 128
	// tick is by how much a file's time may be behind the clock that told when a container was made.
	tick = 10 * time.Millisecond
)

// notes are what could not be looked at, each in a line. Their number is bounded: who may read nothing has one for each
// folder.
type notes struct{ list []string }

// mostNotes is how many there are at most, before one that says that there are more.
const mostNotes = 100

func (n *notes) add(format string, args ...any) {
	switch {
	case len(n.list) < mostNotes:
		n.list = append(n.list, fmt.Sprintf(format, args...))
	case len(n.list) == mostNotes:
		n.list = append(n.list, "and more")
	}
}

// bounds ends a walk that takes too long.
type bounds struct {
	notes
	until   time.Time
	visited int
	told    int
	more    string // why the walk has ended; "": it has not
}

func newBounds() *bounds { return &bounds{until: time.Now().Add(mostTime)} }

// over reports whether the walk is to end, and counts a file.
func (b *bounds) over() bool {
	b.visited++
	switch {
	case b.more != "":
	case b.visited > mostVisited:
		b.more = fmt.Sprintf("this is not all: %d files were looked at, which is the most", mostVisited)
	case b.told >= mostTold:
		b.more = fmt.Sprintf("this is not all: %d were found, which is the most", mostTold)
	case b.visited%256 == 0:
		return b.late()
	}
	return b.more != ""
}

// late reports whether the time is over.
func (b *bounds) late() bool {
	if b.more == "" && time.Now().After(b.until) {
		b.more = fmt.Sprintf("this is not all: it took longer than %s", mostTime)
	}
	return b.more != ""
}

// changes is a walk for what was written since a time.
type changes struct {
	*bounds
	since time.Time
	found []entry
}

// noImage is in place of an image's folder that is not there.
const noImage = -1

// changed tells which files of the root filesystem were written since a time, as the kernel noted it, which no program
// can set, and which of its image's are gone. Volumes are passed over. Where the image's files are not here, a folder
// is told of if it changed and nothing in it that is still there did: then something in it is gone.
func (l *looker) changed(q question) (a answer, err error) {
	r, at, err := l.within(q.Root, q.Path)
	if err != nil {
		return a, err
	}
	defer r.close()
	if q.Then.IsZero() {
		known, _ := l.runOf(q.Root)
		if q.Then = known.CreatedAt; q.Then.IsZero() {
			return a, fmt.Errorf("it is not known here when container %s was made", q.Root)
		}
	}
	fd, err := r.open(at, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return a, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	defer unix.Close(fd)
	c := &changes{bounds: newBounds(), since: q.Then.Add(-tick)}
	where, _ := r.kernels(fd)
	image := noImage
	if of, _, err := l.within(q.Root+ofImage, "/"); err == nil {
		defer of.close()
		if image, err = of.open(path.Join("/", where), unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
			image = noImage
		} else {
			defer unix.Close(image)
		}
	}
	c.walk(fd, image, "", path.Join("/", where), 0)
	return answer{Files: c.found, More: c.more, Notes: c.list, Visited: c.visited}, nil
}

// walk goes through an open folder, beside that of the image, and reports whether anything in it changed, or may have.
func (c *changes) walk(fd, image int, below, where string, deep int) (any bool) {
	names, more, err := namesIn(fd, mostVisited)
	if err != nil || more {
		c.add("%s was not looked at as a whole", where)
		any = true
	} else if image != noImage && c.wrote(fd) {
		any = c.gone(image, names, below, where)
	}
	for _, name := range names {
		if c.over() {
			return true
		}
		at := path.Join(where, name)
		if hiddenByKernel(at) {
			continue
		}
		e, err := entryOf(fd, name)
		switch {
		case errors.Is(err, unix.ENOENT): // it went away meanwhile
			continue
		case err != nil:
			c.add("%s was not looked at: %v", at, err)
			any = true
			continue
		case e.Mount:
			any = true // the folder was made for it
			continue
		}
		e.Name = path.Join(below, e.Name)
		is := e.Changed.After(c.since)
		e.Image = is && has(image, name)
		if e.Kind == "d" {
			inside := c.into(fd, image, name, e.Name, at, deep)
			any = any || inside
			is = is && !inside
		}
		if is {
			any = true
			c.told++
			c.found = append(c.found, e)
		}
	}
	return any
}

// wrote reports whether a folder has changed.
func (c *changes) wrote(fd int) bool {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_CTIME, &st)
	return err != nil || timeOf(st.Ctime).After(c.since)
}

// gone tells what a folder of the image has by names that that of the container has not, and reports whether there is
// any.
func (c *changes) gone(image int, names []string, below, where string) (any bool) {
	had, more, err := namesIn(image, mostVisited)
	if err != nil || more {
		c.add("what is gone from %s was not looked at as a whole", where)
	}
	here := make(map[string]bool, len(names))
	for _, name := range names {
		here[name] = true
	}
	for _, name := range had {
		if here[name] || hiddenByKernel(path.Join(where, name)) {
			continue
		}
		if c.over() {
			return true
		}
		e, err := entryOf(image, name)
		if err != nil {
			c.add("%s was not looked at: %v", path.Join(where, name), err)
			continue
		}
		e.Name, e.Gone, e.Image, any = path.Join(below, e.Name), true, true, true
		c.told++
		c.found = append(c.found, e)
	}
	return any
}

// has reports whether an open folder has something by a name.
func has(image int, name string) bool {
	if image == noImage {
		return false
	}
	var st unix.Statx_t
	return unix.Statx(image, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &st) == nil
}

// into is walk for a folder in an open one.
func (c *changes) into(fd, image int, name, below, at string, deep int) bool {
	if deep >= mostDeep {
		c.add("%s is too deep: what is in it was not looked at", at)
		return true
	}
	sub, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		c.add("%s was not looked at: %v", at, err)
		return true
	}
	defer unix.Close(sub)
	if image != noImage {
		if image, err = unix.Openat(image, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC,
			0); err == nil {
			defer unix.Close(image)
		} else {
			image = noImage // a folder of the container's own
		}
	}
	return c.walk(sub, image, below, at, deep+1)
}

// hiddenByKernel reports whether a path is one that a running container has something of the kernel's at.
func hiddenByKernel(at string) bool { return at == "/dev" || at == "/proc" || at == "/sys" }
