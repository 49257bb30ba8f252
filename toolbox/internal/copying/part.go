// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// partPrefix begins the names of files that are not whole yet.
const partPrefix = ".wherry-cp-"

// How long who asks for a part waits for the process of a connection that was cut, which may not have ended yet.
const (
	lockTries = 40
	lockPause = 50 * time.Millisecond
)

// partName is the name of a file's part in its folder. Each file has a part of its own: who goes on with a copy may
// visit others before it, which must not take what has come of it. Who does not know the token does not find it.
func (k *kept) partName(base string) string {
	sum := sha256.Sum256([]byte(k.token + "\x00" + base))
	return partPrefix + base32.StdEncoding.EncodeToString(sum[:])[:tokenSize]
}

// openPart opens the part of a file in a folder, and locks it for as long as it is open: a part that nobody holds
// belongs to a copy that was cut. That of a copy which is kept may be there already, with something in it; asked says
// that this is of use.
//
// Two processes never write to one file: who cannot have the lock, because another has not heard of a cut yet or the
// file system has no locks, takes a new part, under a name that nobody else knows, and has a copy in it of what there
// is.
func (u *Unpacker) openPart(dir int, base string, asked bool) (*part, error) {
	if u.kept == nil {
		return newPart(dir)
	}
	name, tries := u.kept.partName(base), 1
	if asked {
		tries = lockTries
	}
	for ; tries > 0; tries-- {
		f, err := openIn(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
		fresh := err == nil
		if errors.Is(err, unix.EEXIST) {
			if f, err = openIn(dir, name, unix.O_RDWR); err != nil {
				continue // it went meanwhile; or is a link or a folder, and none of ours
			}
		}
		if err != nil {
			return nil, err
		}
		held := lock(f)
		if fresh && held != unix.EWOULDBLOCK || held == nil && mine(dir, name, f) {
			return &part{file: f, name: name, fresh: fresh}, nil
		}
		f.Close()
		if held == unix.EWOULDBLOCK && tries > 1 {
			time.Sleep(lockPause)
		}
	}
	p, err := newPart(dir)
	if err == nil && asked {
		p.fresh = false
		u.copyPart(dir, name, p)
	}
	return p, err
}

// copyPart copies what is there of a file to another part of it; nothing, if there is no room or no such part.
func (u *Unpacker) copyPart(dir int, name string, p *part) {
	f, err := openIn(dir, name, unix.O_RDONLY)
	if err != nil {
		return
	}
	defer f.Close()
	if !mine(dir, name, f) {
		return
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{p.file}, struct{ io.Reader }{f}, u.buffer); err != nil {
		_ = p.file.Truncate(0) // what cannot be done is seen when something is written
	}
}

// newPart makes a part that nobody else can know of.
func newPart(dir int) (*part, error) {
	name := partPrefix + rand.Text()
	f, err := openIn(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return nil, err
	}
	_ = lock(f) // where there are no locks, it is one that is kept for a while
	return &part{file: f, name: name, fresh: true}, nil
}

// lock locks an open file, unless another has it locked (EWOULDBLOCK).
func lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}

// stands reports whether an open file still has a name.
func stands(dir int, name string, f *os.File) bool {
	var at, open unix.Stat_t
	return unix.Fstatat(dir, name, &at, unix.AT_SYMLINK_NOFOLLOW) == nil && unix.Fstat(int(f.Fd()), &open) == nil &&
		at.Dev == open.Dev && at.Ino == open.Ino
}

// mine reports whether an open file that has a name is one that a process of this user has made for a copy: in a folder
// that others may write to, it could be anything.
func mine(dir int, name string, f *os.File) bool {
	var st unix.Stat_t
	return stands(dir, name, f) && unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink == 1 &&
		int(st.Uid) == os.Geteuid()
}

// staleAge is how old a part is, at least, that nobody comes back for. A sender tries for a minute after the last byte;
// if he gives up then, the same command goes on for another ten minutes (keptFor in internal/cli/pods). He promises
// that, so a part stays for longer than both: it has its time from the last byte, and nobody holds it meanwhile.
const staleAge = 15 * time.Minute

// mostSwept bounds how many names of a folder are looked through for parts.
const mostSwept = 10_000

// sweep takes away what copies have left in a folder that were cut off and not gone on with. It looks once in each.
func (u *Unpacker) sweep(dir int, folder string, now time.Time) {
	if folder == u.swept {
		return
	}
	u.swept = folder
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // one may write to it and not read it
	}
	f := os.NewFile(uintptr(fd), folder)
	defer f.Close()
	for seen := 0; seen < mostSwept; {
		names, err := f.Readdirnames(256)
		for _, name := range names {
			if token, is := strings.CutPrefix(name, partPrefix); is && checkToken(token) == nil {
				sweepPart(dir, name, now)
			}
		}
		if seen += len(names); err != nil || len(names) == 0 {
			return
		}
	}
}

// sweepPart takes away a part that nobody holds, and that is old.
func sweepPart(dir int, name string, now time.Time) {
	f, err := openIn(dir, name, unix.O_RDWR)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || now.Sub(info.ModTime()) < staleAge || lock(f) != nil || !mine(dir, name, f) {
		return
	}
	_ = unix.Unlinkat(dir, name, 0)
}

// fill writes an entry's content to its part.
func (u *Unpacker) fill(p *part, content io.Reader) error {
	var to io.Writer = p.file
	if u.kept != nil {
		u.kept.size = 0
		to = counted{to, u.kept}
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, content, u.buffer)
	return err
}
