// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// entry is what is told of a file.
type entry struct {
	Name    string    `json:"name"` // escaped; of changed and compare: a path below the folder
	Kind    string    `json:"kind"` // f, d, l, p, s, c, b as find has them
	Size    int64     `json:"size"`
	Mode    uint32    `json:"mode"`
	UID     uint32    `json:"uid"`
	GID     uint32    `json:"gid"`
	Time    time.Time `json:"time"`             // of the last change of its contents
	Changed time.Time `json:"changed,omitzero"` // of anything of it: nobody can set that
	To      string    `json:"to,omitempty"`     // of a link, escaped
	Folder  bool      `json:"folder,omitempty"` // it is a folder, or a link that leads to one
	Kernel  bool      `json:"kernel,omitempty"` // a running container has something of the kernel's in its place
	Mount   bool      `json:"mount,omitempty"`  // a volume, or a file from outside of the image
	Image   bool      `json:"image,omitempty"`  // changed: the image has something by this name
	Gone    bool      `json:"gone,omitempty"`   // changed: the container has not, any more; this is the image's

	device, inode uint64
}

const (
	// mostEntries is how many files a listing tells of, and a walk finds worth telling.
	mostEntries = 20_000
	// asked is what is asked of the kernel about a file.
	asked = unix.STATX_BASIC_STATS
)

// entryOf asks about a file in an open folder, without following it.
func entryOf(dir int, base string) (e entry, err error) {
	var st unix.Statx_t
	if err := unix.Statx(dir, base, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, asked, &st); err != nil {
		return e, err
	}
	e = entry{
		Name: escape(base), Kind: kindOf(uint32(st.Mode)), Size: int64(st.Size), Mode: uint32(st.Mode) & 0o7777,
		UID: st.Uid, GID: st.Gid, Time: timeOf(st.Mtime), Changed: timeOf(st.Ctime),
		Mount:  st.Attributes_mask&st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
		device: uint64(unix.Mkdev(st.Dev_major, st.Dev_minor)), inode: st.Ino,
	}
	e.Folder = e.Kind == "d"
	if e.Kind == "l" {
		to, _ := readlinkat(dir, base) // it may have gone
		e.To = escape(to)
	}
	return e, nil
}

// timeOf is the zero time where JSON has none: a program may give its files the year 300000.
func timeOf(t unix.StatxTimestamp) time.Time {
	at := time.Unix(t.Sec, int64(t.Nsec)).UTC()
	if year := at.Year(); year < 0 || year > 9999 {
		return time.Time{}
	}
	return at
}

func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "d"
	case unix.S_IFLNK:
		return "l"
	case unix.S_IFIFO:
		return "p"
	case unix.S_IFSOCK:
		return "s"
	case unix.S_IFCHR:
		return "c"
	case unix.S_IFBLK:
		return "b"
	}
	return "f"
}

// run is what is known of what a root's container did: status.json of an image exec has more.
type run struct {
	Attempt   uint32    `json:"attempt"`
	State     string    `json:"state"` // running, exited, unknown
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// runOf reads what is known of a container; ok is false if nothing is.
func (l *looker) runOf(name string) (r run, ok bool) {
	text, err := os.ReadFile(path.Join(l.base, ".wherry", name, "status.json"))
	return r, err == nil && json.Unmarshal(text, &r) == nil
}

// containers tells which roots there are.
func (l *looker) containers(question) (a answer, err error) {
	list, err := os.ReadDir(l.base)
	if err != nil {
		return a, err
	}
	a.Runs = map[string]run{}
	for _, f := range list {
		if f.IsDir() && !strings.HasPrefix(f.Name(), ".") {
			a.Files = append(a.Files, entry{Name: f.Name(), Kind: "d", Folder: true})
			if known, ok := l.runOf(f.Name()); ok {
				a.Runs[f.Name()] = known
			}
		}
	}
	return a, nil
}

// list tells what is in a folder.
func (l *looker) list(q question) (a answer, err error) {
	r, at, err := l.within(q.Root, q.Path)
	if err != nil {
		return a, err
	}
	defer r.close()
	fd, err := r.open(at, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return a, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	defer unix.Close(fd)
	names, more, err := namesIn(fd, mostEntries)
	if err != nil {
		return a, err
	}
	if more {
		a.More = fmt.Sprintf("the folder has more than %d files: these are the first that it names", mostEntries)
	}
	where, inKernels := r.kernels(fd)
	if inKernels {
		return a, fmt.Errorf("%s is the kernel's in a running container: a shell in the container shows it", where)
	}
	users, groups := map[uint32]bool{}, map[uint32]bool{}
	var n notes
	for _, name := range names {
		e, err := entryOf(fd, name)
		if errors.Is(err, unix.ENOENT) {
			continue // it went away meanwhile
		}
		if err != nil {
			n.add("look at %s: %v", name, err)
			continue
		}
		if e.Kind == "l" {
			e.Folder = r.isFolder(path.Join(at, name))
		}
		e.Kernel = strings.Trim(where, "/") == "" && (name == "dev" || name == "proc" || name == "sys")
		users[e.UID], groups[e.GID] = true, true
		a.Files = append(a.Files, e)
	}
	a.Notes = n.list
	a.Users, a.Groups = r.namesOf("/etc/passwd", users), r.namesOf("/etc/group", groups)
	return a, nil
}

// isFolder reports whether a path leads to a folder.
func (r *root) isFolder(at string) bool {
	fd, err := r.open(at, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// namesIn are the names in an open folder, sorted, and whether there are more than are wanted.
func namesIn(fd, most int) (names []string, more bool, err error) {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, err
	}
	folder := os.NewFile(uintptr(again), "folder")
	defer folder.Close()
	names, err = folder.Readdirnames(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if more = len(names) > most; more {
		names = names[:most]
	}
	slices.Sort(names)
	return names, more, nil
}

// namesOf reads the names of numbers from a file of the root's, as /etc/passwd is. It is a container's: what is odd in
// it is passed over.
func (r *root) namesOf(file string, wanted map[uint32]bool) map[uint32]string {
	f, _, err := r.openFile(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	out := map[uint32]string{}
	for lines := bufio.NewScanner(io.LimitReader(f, 1<<20)); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), ":", 4)
		if len(fields) < 4 {
			continue
		}
		n, err := strconv.ParseUint(fields[2], 10, 32)
		if _, known := out[uint32(n)]; err == nil && wanted[uint32(n)] && !known && len(fields[0]) <= 64 {
			out[uint32(n)] = fields[0]
		}
	}
	return out
}
