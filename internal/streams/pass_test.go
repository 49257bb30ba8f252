// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// atMost is a stream that says so many bytes at once, at most, as often as it is read.
type atMost int

func (s atMost) Read(p []byte) (int, error) { return min(len(p), int(s)), nil }

// The room for a stream grows with what that says, and is small again after a while in which it says little; the small
// pieces between large ones do not cost it.
func TestRoom(t *testing.T) {
	var r room
	for i, step := range []struct {
		says  atMost
		times int
		has   int // size of the room for the next read
	}{
		{1, 100, littleAtOnce},
		{1 << 20, 3, muchAtOnce},
		{0, 100, muchAtOnce}, // ends of messages
		{1, littleInARow - 1, muchAtOnce},
		{littleAtOnce, 1, muchAtOnce},
		{1, littleInARow - 1, muchAtOnce},
		{1, 1, 0},
		{1, 100, littleAtOnce},
		{littleAtOnce, 1, 4 * littleAtOnce},
	} {
		for range step.times {
			if text, err := r.read(step.says); err != nil || len(text) == 0 && step.says > 0 {
				t.Fatal(len(text), err)
			}
		}
		if len(r.buf) != step.has {
			t.Errorf("step %d: the room is %d, want %d", i, len(r.buf), step.has)
		}
	}
}

// pieces says one text after the other.
type pieces [][]byte

func (s *pieces) Read(p []byte) (int, error) {
	if len(*s) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*s)[0])
	if (*s)[0] = (*s)[0][n:]; len((*s)[0]) == 0 {
		*s = (*s)[1:]
	}
	return n, nil
}

// What is handed on is what was said, however much of it comes at once.
func TestPass(t *testing.T) {
	var from pieces
	var want, got bytes.Buffer
	for i := range 3 {
		from = append(from, bytes.Repeat([]byte{byte('a' + i)}, 600_000))
		for j := range 2 * littleInARow {
			from = append(from, []byte{byte('0' + j)})
		}
	}
	for _, text := range from {
		want.Write(text)
	}
	if err := Pass(&got, &from); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%v; %d bytes of %d, or others", err, got.Len(), want.Len())
	}
	r, w := io.Pipe()
	r.Close()
	if err := Pass(w, atMost(1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("nobody takes it: %v", err)
	}
}
