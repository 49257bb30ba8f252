// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"context"
	"io"
)

// Kinds of frames, as the toolbox's cp-unpack --keep reads them: a kind, the size of what follows in three bytes, and
// that.
const (
	frameData   = 'd'
	frameEnd    = 'e' // of the archive
	frameCalled = 'x' // the copy is called off: what is not whole is to be taken away
	frameHead   = 4
	// frameSize is how much goes into a frame: with its head one message of the session. All small things, as headers
	// are, are gathered in one.
	frameSize = 256<<10 - frameHead
)

// frames writes an archive in frames. The end of ctx is an error of the next one.
type frames struct {
	ctx context.Context
	to  io.Writer
	buf []byte // a head, and what is not written yet
}

func newFrames(ctx context.Context, to io.Writer) *frames {
	return &frames{ctx: ctx, to: to, buf: make([]byte, frameHead, frameHead+frameSize)}
}

// Write implements io.Writer.
func (f *frames) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if err := f.room(); err != nil {
			return n, err
		}
		part := min(len(p), cap(f.buf)-len(f.buf))
		f.buf = append(f.buf, p[:part]...)
		p, n = p[part:], n+part
	}
	return n, nil
}

// readFrom writes n bytes of a reader, of which none are copied on the way.
func (f *frames) readFrom(r io.Reader, n int64) (read int64, err error) {
	for read < n {
		if err := f.room(); err != nil {
			return read, err
		}
		free := f.buf[len(f.buf):cap(f.buf)]
		got, err := io.ReadFull(r, free[:min(n-read, int64(len(free)))])
		f.buf = f.buf[:len(f.buf)+got]
		if read += int64(got); err != nil {
			return read, err
		}
	}
	return read, nil
}

// room writes the frame if it is full.
func (f *frames) room() error {
	if len(f.buf) < cap(f.buf) {
		return nil
	}
	return f.flush()
}

// flush writes what is gathered.
func (f *frames) flush() error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	if len(f.buf) == frameHead {
		return nil
	}
	head(f.buf, frameData, len(f.buf)-frameHead)
	_, err := f.to.Write(f.buf)
	f.buf = f.buf[:frameHead]
	return err
}

func head(frame []byte, kind byte, size int) {
	frame[0], frame[1], frame[2], frame[3] = kind, byte(size>>16), byte(size>>8), byte(size)
}

// end writes what is gathered and the archive's end.
func (f *frames) end() error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.last(frameEnd)
}

// callOff says that nothing more comes of the archive, and that it is not to be gone on with.
func (f *frames) callOff() error { return f.last(frameCalled) }

func (f *frames) last(kind byte) error {
	var frame [frameHead]byte
	head(frame[:], kind, 0)
	_, err := f.to.Write(frame[:])
	return err
}
