// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// AskRecord is the record of an entry that is a question: what is there of a file of this size, and of the entry's
// time? The entry of the file itself follows; with an [OffsetRecord] its content is the rest of it alone.
const AskRecord = "WHERRY.ask"

// kept is how a copy deals with what it has when the archive is cut off: the part of a file stays, under a name that
// the sender knows, for the process that goes on with it.
type kept struct {
	token string
	say   func(line string) // to the sender
	// entries and size are how far this archive has come: whole entries, and bytes of the one that is being read.
	entries, size int64
	told          time.Time // when the sender was told last
	failed        bool      // of an entry: what follows it is not reported, for it is to be sent again
	pending       *part     // the one that a question was about
}

// part is a file that is not whole yet.
type part struct {
	file  *os.File
	name  string // in its folder
	entry string // the archive's name of the file; "" unless it is pending
	at    int64  // so many bytes of it are there
	fresh bool   // nothing was ever written to it
}

// tokenSize is the length of a token: what crypto/rand.Text makes.
const tokenSize = 26

// checkToken refuses what cannot be part of a file's name, or could be guessed.
func checkToken(token string) error {
	if len(token) != tokenSize || strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return fmt.Errorf("%.40q: want %d letters (A to Z) and digits (2 to 7)", token, tokenSize)
	}
	return nil
}

// How often the sender is told how far the archive has come: after so many bytes of a file, and with an entry, when so
// much time has passed.
const (
	tellBytes = 8 << 20
	tellTime  = 100 * time.Millisecond
)

// passed notes that an entry was dealt with.
func (k *kept) passed(err error) {
	k.entries++
	k.size = 0
	k.failed = k.failed || err != nil
	if !k.failed && time.Since(k.told) >= tellTime {
		k.tell()
	}
}

func (k *kept) tell() {
	k.told = time.Now()
	k.say(fmt.Sprintf("at %d %d", k.entries, k.size))
}

// counted is a part that is being written. It tells the sender how far that is.
type counted struct {
	io.Writer
	k *kept
}

// Write implements io.Writer.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	before := c.k.size / tellBytes
	if c.k.size += int64(n); c.k.size/tellBytes > before && !c.k.failed {
		c.k.tell()
	}
	return n, err
}

// answer tells the sender what there is of a file: "part SIZE SUM", or "whole SIZE SUM" if it stands under its own name
// with the size and time that it is to have; the sender compares the checksum (SHA-256) with that of his own file. The
// part is held for the entry that follows.
func (u *Unpacker) answer(dir int, base string, h *tar.Header) error {
	size, err := strconv.ParseInt(h.PAXRecords[AskRecord], 10, 64)
	if err != nil || size < 0 {
		return fmt.Errorf("%s: %.40q is not a size", AskRecord, h.PAXRecords[AskRecord])
	}
	p, err := u.openPart(dir, base, true)
	if err != nil {
		return err
	}
	info, err := p.file.Stat()
	if err != nil {
		p.drop(dir)
		return err
	}
	p.at = min(info.Size(), size)
	if p.at == 0 {
		if sum, is := sumOfWhole(dir, base, size, h.ModTime); is {
			p.drop(dir)
			u.kept.say(fmt.Sprintf("whole %d %x", size, sum))
			return nil
		}
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(p.file, 0, p.at)); err != nil {
		p.drop(dir)
		return err
	}
	p.entry, u.kept.pending = h.Name, p
	u.kept.say(fmt.Sprintf("part %d %x", p.at, sum.Sum(nil)))
	return nil
}

// sumOfWhole is the checksum of a file that has the size and the time that it is to have.
func sumOfWhole(dir int, base string, size int64, at time.Time) (sum []byte, is bool) {
	f, err := openIn(dir, base, unix.O_RDONLY)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != size || !info.ModTime().Equal(at) {
		return nil, false
	}
	h := sha256.New()
	if n, err := io.Copy(h, f); err != nil || n != size {
		return nil, false
	}
	return h.Sum(nil), true
}

// takePart returns the part that an entry is to be written to, and leaves in it what comes before the entry's content.
func (u *Unpacker) takePart(dir int, base string, h *tar.Header) (*part, error) {
	var p *part
	if u.kept != nil && u.kept.pending != nil && u.kept.pending.entry == h.Name {
		p, u.kept.pending = u.kept.pending, nil
	}
	rest, goesOn := h.PAXRecords[OffsetRecord]
	at := int64(0)
	if u.kept != nil && goesOn {
		var err error
		at, err = strconv.ParseInt(rest, 10, 64)
		if err != nil || p == nil || at <= 0 || at > p.at {
			p.drop(dir)
			return nil, errors.New("the archive has the rest of a file of which the beginning is not here")
		}
	}
	if p == nil {
		var err error
		if p, err = u.openPart(dir, base, false); err != nil {
			return nil, err
		}
	}
	if p.fresh {
		return p, nil
	}
	err := p.file.Truncate(at)
	if err == nil {
		_, err = p.file.Seek(at, io.SeekStart)
	}
	if err != nil {
		p.drop(dir)
		return nil, err
	}
	return p, nil
}

// drop takes a part away; nil is none.
func (p *part) drop(dir int) {
	if p != nil {
		_ = unix.Unlinkat(dir, p.name, 0) // it may be gone with its folder
		_ = p.file.Close()
	}
}

// letGo takes away the part that a question was about, if the sender had no use for it: another entry comes.
func (u *Unpacker) letGo(next string) {
	k := u.kept
	if k == nil || k.pending == nil || k.pending.entry == next {
		return
	}
	if fd, err := u.folder(path.Dir(path.Clean(k.pending.entry))); err == nil {
		k.pending.drop(fd)
	}
	k.pending = nil
}

// stays reports whether an error is the end of an archive that somebody may go on with: then its last part stays.
func (u *Unpacker) stays(err error) bool { return u.kept != nil && errors.Is(err, io.ErrUnexpectedEOF) }
