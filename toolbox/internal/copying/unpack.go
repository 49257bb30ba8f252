// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Unpacker puts what a tar archive holds into a folder.
type Unpacker struct {
	// devices, pipes and sockets stay: files and links do not take their places; nor is anything put where the kernel's
	// are
	Careful bool
	Owners  bool // give files the owners that the archive names, as far as one may

	root   *root
	dir    string          // in the root
	links  map[string]bool // symbolic links this archive made: nothing goes through them
	stack  []*tar.Header   // folders that may get more; their modes and times are set when they do not
	buffer []byte
	swept  string // the folder in which was looked last for what copies have left
	kept   *kept  // nil: what is not whole is taken away

	parent   string // the folder that was opened last
	parentFD int
}

// NewUnpacker prepares for putting files below dir, which is in root and must be there.
func NewUnpacker(rootPath, dir string) (*Unpacker, error) {
	r, err := openRoot(rootPath)
	if err != nil {
		return nil, err
	}
	u, err := newUnpacker(r, dir)
	if err != nil {
		r.close()
	}
	return u, err
}

// newUnpacker is NewUnpacker for a root that is open; the Unpacker closes it.
func newUnpacker(r *root, dir string) (*Unpacker, error) {
	fd, err := r.open(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Unpacker{Owners: true, root: r, dir: dir, links: map[string]bool{}, buffer: make([]byte, 256<<10),
		parentFD: fd}, nil
}

// Close frees what Unpacker holds.
func (u *Unpacker) Close() {
	if u.kept != nil && u.kept.pending != nil {
		_ = u.kept.pending.file.Close()
	}
	unix.Close(u.parentFD)
	u.root.close()
}

// seen refuses the folder that was opened last if what is put into it would be seen by nobody.
func (u *Unpacker) seen() error {
	if at, hidden := u.root.kernels(u.parentFD); u.Careful && hidden {
		return fmt.Errorf("%s is the kernel's in a running container: a file that is copied there could not be seen in it", at)
	}
	return nil
}

// Hopeless reports whether an error of Put will be that of every further entry as well.
func Hopeless(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EDQUOT)
}

// local checks a name from an archive and makes it plain: parts between slashes, none of them a dot or two.
func local(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return "", errors.New("an absolute name is refused")
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", errors.New("a name with .. is refused")
	}
	return path.Clean(name), nil
}

// Put unpacks one entry.
func (u *Unpacker) Put(h *tar.Header, content io.Reader) error {
	err := u.put(h, content)
	if err != nil {
		return &fs.PathError{Op: "unpack", Path: h.Name, Err: err}
	}
	return nil
}

func (u *Unpacker) put(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := local(h.Name)
	if err != nil {
		return err
	}
	if err := u.settle(name); err != nil {
		return err
	}
	u.letGo(h.Name)
	if name == "." {
		return nil // the folder itself, whose mode is its owner's affair
	}
	fd, err := u.folder(path.Dir(name))
	if err != nil {
		return err
	}
	if err := u.seen(); err != nil {
		return err
	}
	base := path.Base(name)
	switch h.Typeflag {
	case tar.TypeDir:
		return u.makeDir(fd, base, name, h)
	case tar.TypeReg, tar.TypeGNUSparse:
		if _, asked := h.PAXRecords[AskRecord]; asked && u.kept != nil {
			return u.answer(fd, base, h)
		}
		return u.makeFile(fd, base, h, content)
	}
	if h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink {
		if err := u.replaceable(fd, base); err != nil {
			return err
		}
	}
	if err := unix.Unlinkat(fd, base, 0); err != nil && err != unix.ENOENT {
		return err
	}
	delete(u.links, name)
	switch h.Typeflag {
	case tar.TypeSymlink:
		if err := unix.Symlinkat(h.Linkname, fd, base); err != nil {
			return err
		}
		u.links[name] = true
	case tar.TypeLink:
		return u.makeLink(fd, base, h)
	case tar.TypeFifo, tar.TypeChar, tar.TypeBlock:
		kind := map[byte]uint32{tar.TypeFifo: unix.S_IFIFO, tar.TypeChar: unix.S_IFCHR,
			tar.TypeBlock: unix.S_IFBLK}[h.Typeflag]
		if err := unix.Mknodat(fd, base, kind|uint32(h.Mode&0o777),
			int(unix.Mkdev(uint32(h.Devmajor), uint32(h.Devminor)))); err != nil {
			return err
		}
	default:
		return fmt.Errorf("entries of type %q are not known", h.Typeflag)
	}
	return u.attributes(fd, base, h)
}

// folder opens a folder below dir, and makes those that are missing. Links that were there are followed, inside the
// root; links that came with the archive are not.
func (u *Unpacker) folder(name string) (int, error) {
	if u.parent == name && name != "" {
		return u.parentFD, nil
	}
	for at := name; at != "."; at = path.Dir(at) {
		if u.links[at] {
			return 0, fmt.Errorf("%s is a symbolic link from this archive: nothing is written through it", at)
		}
	}
	full := u.dir + "/" + name
	fd, err := u.root.open(full, unix.O_PATH|unix.O_DIRECTORY)
	if err == unix.ENOENT && name != "." {
		above, err := u.folder(path.Dir(name))
		if err != nil {
			return 0, err
		}
		if err := u.seen(); err != nil {
			return 0, err
		}
		if err := unix.Mkdirat(above, path.Base(name), 0o755); err != nil && err != unix.EEXIST {
			return 0, err
		}
		fd, err = u.root.open(full, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return 0, err
		}
	} else if err != nil {
		return 0, err
	}
	unix.Close(u.parentFD)
	u.parent, u.parentFD = name, fd
	return fd, nil
}

func (u *Unpacker) makeDir(fd int, base, name string, h *tar.Header) error {
	if u.links[name] {
		return errors.New("it is a symbolic link from this archive")
	}
	err := unix.Mkdirat(fd, base, uint32(h.Mode&0o777)|0o700)
	if err == unix.EEXIST {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
		case unix.S_IFLNK:
			_, err := u.folder(name) // a link to a folder serves as one, and keeps its mode
			return err
		default:
			return unix.ENOTDIR
		}
	} else if err != nil {
		return err
	}
	kept := *h
	kept.Name = name
	u.stack = append(u.stack, &kept)
	return nil
}

// settle sets modes and times of the folders that name is not below.
func (u *Unpacker) settle(name string) error {
	var errs []error
	for len(u.stack) > 0 {
		last := u.stack[len(u.stack)-1]
		if name != "" && strings.HasPrefix(name, last.Name+"/") {
			break
		}
		u.stack = u.stack[:len(u.stack)-1]
		fd, err := u.folder(path.Dir(last.Name))
		if err == nil {
			err = u.attributes(fd, path.Base(last.Name), last)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Finish sets what can only be set at the end. Call it after the last entry.
func (u *Unpacker) Finish() error {
	u.letGo("")
	return u.settle("")
}

// replaceable refuses what a copy must not take away: folders, and what programs open by its name to reach each other
// or a device.
func (u *Unpacker) replaceable(dir int, base string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil // nothing is there, or whoever makes the file is told what is wrong
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR:
		return unix.EISDIR
	case u.Careful && kind != unix.S_IFREG && kind != unix.S_IFLNK:
		return errors.New("a device, pipe or socket is there, and stays")
	}
	return nil
}

// makeFile writes a file under a name of its own first, so that one which was cut off never stands under the name that
// was asked for.
func (u *Unpacker) makeFile(dir int, base string, h *tar.Header, content io.Reader) (err error) {
	if err := u.replaceable(dir, base); err != nil {
		return err
	}
	u.sweep(dir, u.parent, time.Now())
	p, err := u.takePart(dir, base, h)
	if err != nil {
		return err
	}
	defer p.file.Close()
	defer func() {
		if err != nil && !u.stays(err) {
			_ = unix.Unlinkat(dir, p.name, 0)
		}
	}()
	if holed(h) {
		err = copyHoles(p.file, content, h.Size, u.buffer)
	} else {
		err = u.fill(p, content)
	}
	if err == nil {
		err = u.fileAttributes(dir, p.name, p.file, h)
	}
	if err != nil {
		return err
	}
	err = unix.Renameat(dir, p.name, dir, base)
	if err == unix.EBUSY { // a file that is mounted: a volume's, which can be written to and not replaced
		return u.rewrite(dir, base, p.name, p.file, h)
	}
	return err
}

// rewrite gives an existing file the content of one that was made to replace it and could not.
func (u *Unpacker) rewrite(dir int, base, part string, from *os.File, h *tar.Header) error {
	defer func() { _ = unix.Unlinkat(dir, part, 0) }()
	to, err := openIn(dir, base, unix.O_WRONLY|unix.O_TRUNC)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, u.buffer); err != nil {
		return err
	}
	return errors.Join(u.fileAttributes(dir, base, to, h), to.Close())
}

// openIn opens a regular file of a folder, whatever stands there.
func openIn(dir int, base string, flags int) (*os.File, error) {
	fd, err := unix.Openat(dir, base, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), base)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(errors.New("it is not a regular file"), err)
	}
	return f, nil
}

// fileAttributes sets a file's extended attributes besides what every entry has.
func (u *Unpacker) fileAttributes(dir int, base string, f *os.File, h *tar.Header) error {
	fd := int(f.Fd())
	for key, value := range h.PAXRecords {
		if name, ok := strings.CutPrefix(key, xattrPrefix); ok && name != "security.capability" {
			_ = unix.Fsetxattr(fd, name, []byte(value), 0) // as far as the file system has them
		}
	}
	if err := u.attributes(dir, base, h); err != nil {
		return err
	}
	if value, ok := h.PAXRecords[xattrPrefix+"security.capability"]; ok { // a change of owner takes it away, so last
		_ = unix.Fsetxattr(fd, "security.capability", []byte(value), 0)
	}
	return nil
}

// makeLink makes a hard link to a file that is below dir too.
func (u *Unpacker) makeLink(dir int, base string, h *tar.Header) error {
	target, err := local(h.Linkname)
	if err != nil {
		return fmt.Errorf("link to %s: %w", h.Linkname, err)
	}
	to, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0) // folder may close it
	if err != nil {
		return err
	}
	defer unix.Close(to)
	from, err := u.folder(path.Dir(target))
	if err != nil {
		return fmt.Errorf("link to %s: %w", h.Linkname, err)
	}
	if err := unix.Linkat(from, path.Base(target), to, base, 0); err != nil {
		return fmt.Errorf("link to %s: %w", h.Linkname, err)
	}
	return nil
}

// attributes sets owner, mode and times.
func (u *Unpacker) attributes(dir int, base string, h *tar.Header) error {
	if u.Owners {
		err := unix.Fchownat(dir, base, h.Uid, h.Gid, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && err != unix.EPERM && err != unix.EINVAL { // one may not, or has no such user here
			return err
		}
	}
	if h.Typeflag != tar.TypeSymlink {
		if err := chmodat(dir, base, uint32(h.Mode&0o7777)); err != nil {
			return err
		}
	}
	if h.ModTime.IsZero() {
		return nil
	}
	at := unix.NsecToTimespec(time.Now().UnixNano())
	times := []unix.Timespec{at, {Sec: h.ModTime.Unix(), Nsec: int64(h.ModTime.Nanosecond())}}
	return unix.UtimesNanoAt(dir, base, times, unix.AT_SYMLINK_NOFOLLOW)
}

// chmodat sets permissions and follows no link, which older kernels can do by way of /proc only.
func chmodat(dir int, base string, mode uint32) error {
	err := unix.Fchmodat(dir, base, mode, unix.AT_SYMLINK_NOFOLLOW)
	if err != unix.EOPNOTSUPP && err != unix.ENOSYS {
		return err
	}
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, mode)
}
