// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mostRead is how many bytes of a file one answer has.
	mostRead = 1 << 20
	// piece is how many bytes of a stream a line has.
	piece = 384 << 10
)

// openFile opens a file to read, and nothing else: to open a pipe or a device may do something.
func (r *root) openFile(at string) (*os.File, entry, error) {
	fd, err := r.open(at, unix.O_PATH)
	if err != nil {
		return nil, entry{}, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	e, err := entryOfOpen(fd)
	unix.Close(fd)
	if err != nil {
		return nil, e, &fs.PathError{Op: "look at", Path: at, Err: err}
	}
	if e.Kind != "f" {
		return nil, e, fmt.Errorf("%s is not a file with contents", at)
	}
	// Somebody may put a pipe in its place now: that does not keep us waiting.
	if fd, err = r.open(at, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY); err != nil {
		return nil, e, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	if e, err = entryOfOpen(fd); err == nil && e.Kind != "f" {
		err = errors.New("it is not a file with contents any more")
	}
	if err != nil {
		unix.Close(fd)
		return nil, e, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	e.Name = escape(path.Base(at))
	return os.NewFile(uintptr(fd), at), e, nil
}

// entryOfOpen asks about what is open.
func entryOfOpen(fd int) (e entry, err error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, asked, &st); err != nil {
		return e, err
	}
	return entry{Kind: kindOf(uint32(st.Mode)), Size: int64(st.Size), Mode: uint32(st.Mode) & 0o7777, UID: st.Uid,
		GID: st.Gid, Time: timeOf(st.Mtime), Changed: timeOf(st.Ctime), Folder: kindOf(uint32(st.Mode)) == "d",
		device: uint64(unix.Mkdev(st.Dev_major, st.Dev_minor)), inode: st.Ino}, nil
}

// open opens the file that is asked about.
func (l *looker) open(q question) (*os.File, entry, error) {
	r, at, err := l.within(q.Root, q.Path)
	if err != nil {
		return nil, entry{}, err
	}
	defer r.close()
	return r.openFile(at)
}

// read tells a part of a file.
func (l *looker) read(q question) (a answer, err error) {
	f, e, err := l.open(q)
	if err != nil {
		return a, err
	}
	defer f.Close()
	most := min(max(q.Most, 0), mostRead)
	if most == 0 {
		most = mostRead
	}
	data := make([]byte, most)
	n, err := f.ReadAt(data, max(q.From, 0))
	if err != nil && !errors.Is(err, io.EOF) {
		return a, err
	}
	return answer{File: &e, Data: data[:n]}, nil
}

// lines writes a stream as answers.
type lines struct{ l *looker }

func (s lines) Write(data []byte) (int, error) { return len(data), s.l.say(answer{Data: data}) }

// send tells all of a file, piece by piece.
func (l *looker) send(q question) (a answer, err error) {
	f, e, err := l.open(q)
	if err != nil {
		return a, err
	}
	defer f.Close()
	if err := l.say(answer{File: &e}); err != nil {
		return a, err
	}
	// Not more than it had: a log that is written all the time would never end.
	n, err := io.CopyBuffer(lines{l}, struct{ io.Reader }{io.LimitReader(f, e.Size)}, make([]byte, piece))
	if err == nil && n < e.Size {
		err = fmt.Errorf("%s became shorter while it was read: %d of %d bytes came", f.Name(), n, e.Size)
	}
	return a, err
}

// pack tells a folder, or a file, as a tar archive.
func (l *looker) pack(q question) (a answer, err error) {
	r, at, err := l.within(q.Root, q.Path)
	if err != nil {
		return a, err
	}
	defer r.close()
	dir, found, err := r.find(strings.TrimRight(at, "/") + "/") // a link to a folder is what it leads to, as in list
	if err != nil {
		return a, err
	}
	defer unix.Close(dir)
	kernels := r.kernelsIn(dir, found)
	if err := l.say(answer{File: &entry{Size: sizeOf(dir, found, kernels)}}); err != nil {
		return a, err
	}
	out := bufio.NewWriterSize(lines{l}, piece)
	p := NewPacker(out)
	var n notes
	p.Problem, p.Note = func(err error) { n.add("%v", err) }, func(words string) { n.add("%s", words) }
	p.Skip = func(name string, _ fs.FileInfo) bool { return kernels(name) }
	for _, f := range found {
		if err := p.add(dir, f.base, f.name); err != nil {
			return a, err
		}
	}
	return answer{Notes: n.list}, errors.Join(p.Close(), out.Flush())
}

// put writes a file into a folder, and asks for each piece of it. It is there once it is whole; what was there stays
// until then.
func (l *looker) put(q question) (a answer, err error) {
	in := &pieces{l: l, left: q.Size}
	if q.Size < 0 {
		return a, errors.New("a file has no negative size")
	}
	name, err := url.PathUnescape(q.Name)
	if err != nil || name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return a, fmt.Errorf("%q is not a file's name", q.Name)
	}
	if strings.HasSuffix(q.Root, ofImage) {
		return a, errors.New("the files of an image cannot be written to")
	}
	r, at, err := l.within(q.Root, q.Path)
	if err != nil {
		return a, err
	}
	r.close()
	u, err := NewUnpacker(path.Join(l.base, q.Root), at)
	if err != nil {
		return a, err
	}
	defer u.Close()
	u.Owners, u.Careful = true, true
	if err := u.seen(); err != nil {
		return a, err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: q.Size, ModTime: time.Now()}
	switch e, err := entryOf(u.parentFD, name); {
	case err == nil && !q.Over:
		return a, fmt.Errorf("%s is there already: it was made after the folder was read", name)
	case err == nil && e.Kind == "f": // it keeps what it is but for its contents
		h.Mode, h.Uid, h.Gid = int64(e.Mode), int(e.UID), int(e.GID)
	}
	if err := u.Put(h, in); err != nil {
		return a, err
	}
	return a, u.Finish()
}

// pieces reads a file that comes in lines, and asks for each of them.
type pieces struct {
	l    *looker
	left int64
	got  int64
	rest []byte
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		if p.left == 0 {
			return 0, io.EOF
		}
		if err := p.more(); err != nil {
			return 0, err
		}
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieces) more() error {
	if err := p.l.say(answer{Got: &p.got}); err != nil {
		return err
	}
	q, err := p.l.next()
	switch {
	case err != nil:
		return fmt.Errorf("the file did not come to its end: %w", errors.Join(io.ErrUnexpectedEOF, err))
	case len(q.Data) == 0 || int64(len(q.Data)) > p.left:
		return errors.New("what came is not the next piece of the file")
	}
	p.rest, p.got, p.left = q.Data, p.got+int64(len(q.Data)), p.left-int64(len(q.Data))
	return nil
}
