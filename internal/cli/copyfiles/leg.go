// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

// askRecord is the record of an entry that is a question: what is there of a file of this size?
const askRecord = "WHERRY.ask"

// Leg is what goes over one connection: it hears what the other side says by Write, while Send runs.
type Leg struct {
	sender  *Sender
	begun   atomic.Bool
	into    chan string
	answers chan answer
	line    []byte // of which the end has not come
	out     *frames
}

// Leg begins with a connection. One ends before the next one begins.
func (s *Sender) Leg() *Leg {
	s.nextLeg()
	return &Leg{sender: s, into: make(chan string, 1), answers: make(chan answer, 1)}
}

// Begun reports whether the other side was there, and knows how to go on with a copy.
func (l *Leg) Begun() bool { return l.begun.Load() }

// ErrLegOver is the end of a connection while something was to be sent.
var ErrLegOver = errors.New("the session ended before all was sent")

// Send waits for the other side, has name choose what the copy is called there, and sends. over is closed when the
// connection has ended. When ctx ends the copy is called off, in words of the protocol; and so it is after a failure
// on this side.
func (l *Leg) Send(ctx context.Context, to io.Writer, over <-chan struct{}, name func(into string) string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-over:
			cancel(ErrLegOver)
		case <-ctx.Done():
		}
	}()
	l.out = newFrames(ctx, to)
	err := l.all(ctx, name)
	if err == nil {
		err = l.out.end()
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil { // that is why, and not what follows from it
		err = context.Cause(ctx)
	}
	_ = l.out.callOff() // there may be nobody any more who hears it
	return err
}

// all sends the archive.
func (l *Leg) all(ctx context.Context, name func(into string) string) error {
	var first string
	select {
	case into := <-l.into:
		first = name(into)
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := l.tree(ctx, first); err != nil {
		return err
	}
	return tar.NewWriter(l.out).Close()
}

// tree sends what stands at the sender's path.
func (l *Leg) tree(ctx context.Context, first string) error {
	local := l.sender.local
	return filepath.WalkDir(local, func(file string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(local, file)
		if err != nil {
			return err
		}
		name := path.Join(first, filepath.ToSlash(rel))
		switch kind := d.Type(); {
		case kind.IsRegular():
			return l.file(ctx, file, name)
		case kind.IsDir(), kind&fs.ModeSymlink != 0:
			return l.plain(file, name, d)
		}
		l.sender.Skipped(file, notCopied)
		return nil
	})
}

// plain sends a folder or a link: again too, for a folder gets its mode and its time when all in it is there.
func (l *Leg) plain(file, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h, err := headerOf(file, name, info)
	if err != nil {
		return err
	}
	return l.header(h, "")
}

// header sends an entry's header; whole is the file that the entry makes whole.
func (l *Leg) header(h *tar.Header, whole string) error {
	l.sender.sent(whole)
	return tar.NewWriter(l.out).WriteHeader(h)
}

// file sends a file, or what is not there of it.
func (l *Leg) file(ctx context.Context, file, name string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		l.sender.Skipped(file, notCopied) // it was replaced just now
		return nil
	}
	if l.sender.there(name) {
		l.sender.There(info.Size())
		return nil
	}
	h, err := headerOf(file, name, info)
	if err != nil {
		return err
	}
	if l.sender.asks(name, h.Size) {
		all, err := l.ask(ctx, f, h)
		if all || err != nil {
			return err
		}
	}
	if err := l.header(h, name); err != nil {
		return err
	}
	n, err := l.out.readFrom(f, h.Size)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: the file shrank while it was being read (%d of %d bytes)", file, n, h.Size)
	}
	if err != nil {
		return err
	}
	_, err = l.out.Write(make([]byte, (tarBlock-h.Size%tarBlock)%tarBlock))
	return err
}

// ask asks the other side what it has of a file. all: that is the file as it is here. Else h becomes the header of what
// is to come, and f stands where that begins.
func (l *Leg) ask(ctx context.Context, f *os.File, h *tar.Header) (all bool, err error) {
	question := *h
	question.Size, question.PAXRecords = 0, map[string]string{askRecord: strconv.FormatInt(h.Size, 10)}
	if err := errors.Join(l.header(&question, ""), l.out.flush()); err != nil {
		return false, err
	}
	var has answer
	select {
	case has = <-l.answers:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if has.size > h.Size || has.whole && has.size != h.Size {
		return false, fmt.Errorf("%s: the other side of the copy has %d bytes of %d", h.Name, has.size, h.Size)
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, has.size); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if !bytes.Equal(sum.Sum(nil), has.sum) || has.size == 0 { // it has changed, here or there
		_, err := f.Seek(0, io.SeekStart)
		return false, err
	}
	l.sender.There(has.size)
	if has.whole {
		return true, nil
	}
	h.PAXRecords = map[string]string{offsetRecord: strconv.FormatInt(has.size, 10)}
	h.Size -= has.size
	return false, nil
}
