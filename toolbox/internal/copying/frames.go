// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"errors"
	"fmt"
	"io"
)

// An archive that its sender may go on with comes in frames: a kind, the size of what follows in three bytes, and that.
// Without them nobody could tell the end of a connection from the end of what was to be sent, for an archive may end
// between any two entries, nor either from a sender who has changed his mind.
const (
	frameData   = 'd'
	frameEnd    = 'e' // of the archive
	frameCalled = 'x' // the copy is called off
	frameHead   = 4
)

// errCalledOff is the end of an archive whose sender wants nothing of it to stay but the files that are whole.
var errCalledOff = errors.New("the copy was called off")

// frames reads the archive out of its frames. The end of the input before the archive's own is io.ErrUnexpectedEOF.
type frames struct {
	from io.Reader
	left int   // of the frame that is read
	err  error // there is no more
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for f.left == 0 && f.err == nil {
		f.err = f.next()
	}
	if f.left == 0 {
		return 0, f.err
	}
	n, err := f.from.Read(p[:min(len(p), f.left)])
	f.left -= n
	if err != nil {
		f.left, f.err = 0, cutShort(err)
		err = f.err
	}
	return n, err
}

// next reads the head of a frame.
func (f *frames) next() error {
	var head [frameHead]byte
	if _, err := io.ReadFull(f.from, head[:]); err != nil {
		return cutShort(err)
	}
	size := int(head[1])<<16 | int(head[2])<<8 | int(head[3])
	switch {
	case head[0] == frameData:
		f.left = size
		return nil
	case head[0] == frameEnd && size == 0:
		return io.EOF
	case head[0] == frameCalled && size == 0:
		return errCalledOff
	}
	return fmt.Errorf("a frame of kind %q with %d bytes is not known", head[0], size)
}

// cutShort is what the end of an input in the middle is called.
func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
