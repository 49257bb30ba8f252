// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Keys that are no characters.
const (
	Up rune = unicode.MaxRune + 1 + iota
	Down
	Left
	Right
	Home
	End
	PageUp
	PageDown
	Delete
	WordLeft
	WordRight
	WordCut
	WordBack
	Escape
	None // a key nobody knows
)

// Ctrl is the key with Ctrl held down.
func Ctrl(letter rune) rune { return letter & 0x1f }

// Is reports whether a file is a terminal.
func Is(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Raw makes a terminal give every key at once; restore undoes it.
func Raw(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	cooked, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	raw := *cooked
	raw.Iflag &^= unix.IXON | unix.INLCR | unix.ISTRIP
	raw.Iflag |= unix.ICRNL // Enter is a line end also for the program that gets what was typed ahead
	raw.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, cooked) }, nil
}

// Size is the terminal's; one that does not know has 24 rows of 80 columns.
func Size(f *os.File) (rows, columns int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 24, 80
	}
	return int(size.Row), int(size.Col)
}

// Byte reads a byte. io.EOF is also the end of a terminal.
func Byte(f *os.File) (byte, error) {
	var b [1]byte
	for {
		n, err := f.Read(b[:])
		switch {
		case n == 1:
			return b[0], nil
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil || errors.Is(err, unix.EIO):
			return 0, io.EOF
		}
		return 0, err
	}
}

// Keys reads keys.
type Keys struct {
	In      *os.File
	Alt     bool // Escape before a letter is the letter with Alt held down; otherwise it is Escape, then the letter
	pending []byte
}

func (k *Keys) byte() (byte, error) {
	if len(k.pending) > 0 {
		b := k.pending[0]
		k.pending = k.pending[1:]
		return b, nil
	}
	return Byte(k.In)
}

// Next reads a key: a character, or one of the keys that terminals send as escape sequences.
func (k *Keys) Next() (rune, error) {
	b, err := k.byte()
	if err != nil {
		return 0, err
	}
	if b == 0x1b {
		// Escape itself has nothing behind it; what a key sends comes in one piece.
		fds := []unix.PollFd{{Fd: int32(k.In.Fd()), Events: unix.POLLIN}}
		if n, _ := unix.Poll(fds, 60); n == 0 && len(k.pending) == 0 {
			return Escape, nil
		}
		return k.sequence()
	}
	if b < utf8.RuneSelf {
		return rune(b), nil
	}
	buf := []byte{b}
	for !utf8.FullRune(buf) && len(buf) < utf8.UTFMax {
		if b, err = k.byte(); err != nil {
			return 0, err
		}
		buf = append(buf, b)
	}
	r, size := utf8.DecodeRune(buf)
	k.pending = append(k.pending, buf[size:]...)
	return r, nil
}

func (k *Keys) sequence() (rune, error) {
	b, err := k.byte()
	if err != nil {
		return 0, err
	}
	switch {
	case b == '[' || b == 'O' && k.Alt:
	case !k.Alt:
		k.pending = append(k.pending, b)
		return Escape, nil
	default:
		key, ok := map[byte]rune{'b': WordLeft, 'f': WordRight, 'd': WordCut, 0x7f: WordBack, 8: WordBack}[b]
		if !ok {
			key = None
		}
		return key, nil
	}
	var seq []byte
	for {
		if b, err = k.byte(); err != nil {
			return 0, err
		}
		if seq = append(seq, b); b >= 0x40 && b <= 0x7e {
			break
		}
	}
	if key, ok := map[string]rune{
		"A": Up, "B": Down, "C": Right, "D": Left, "H": Home, "F": End, "1~": Home, "7~": Home, "4~": End, "8~": End,
		"5~": PageUp, "6~": PageDown, "3~": Delete, "1;5D": WordLeft, "1;5C": WordRight, "1;3D": WordLeft,
		"1;3C": WordRight, "5D": WordLeft, "5C": WordRight,
	}[string(seq)]; ok {
		return key, nil
	}
	return None, nil
}

// RuneCells is how many cells a character takes: two for wide ones, none for marks.
func RuneCells(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0x1f300 && r <= 0x1faff):
		return 2
	}
	return 1
}

// Cells is how much room a text takes; escape sequences take none.
func Cells(text string) int {
	n, escape := 0, false
	for _, r := range text {
		switch {
		case escape:
			escape = !unicode.IsLetter(r)
		case r == 0x1b:
			escape = true
		default:
			n += RuneCells(r)
		}
	}
	return n
}
