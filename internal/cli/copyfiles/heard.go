// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// What the other side of a [Leg] says, a line each:
//
//	wherry-copy 1 folder|name  what the path is that the copy goes to: a folder, or a name in one
//	at ENTRIES BYTES           so many entries are in place, and so much of the next one's content
//	part SIZE SUM              an answer: so much of the file is there, with this checksum
//	whole SIZE SUM             an answer: the file is there
const greeting = "wherry-copy 1 "

// Targets of a copy, as the other side has found them.
const (
	IntoFolder = "folder"
	IntoName   = "name"
)

// maxLine bounds a line that the other side says.
const maxLine = 256

// answer is what the other side has of a file.
type answer struct {
	whole bool
	size  int64
	sum   []byte
}

// said is one line of the other side.
type said struct {
	into           string // of the greeting
	answer         *answer
	entries, bytes int64 // if it is neither
}

// parseSaid reads a line.
func parseSaid(line string) (s said, err error) {
	if into, is := strings.CutPrefix(line, greeting); is && (into == IntoFolder || into == IntoName) {
		return said{into: into}, nil
	}
	words := strings.Split(line, " ")
	wrong := fmt.Errorf("the other side of the copy sent something unexpected: %.100q", line)
	if len(words) != 3 {
		return s, wrong
	}
	n, err := strconv.ParseUint(words[1], 10, 63)
	if err != nil {
		return s, wrong
	}
	switch words[0] {
	case "at":
		bytes, err := strconv.ParseUint(words[2], 10, 63)
		if err != nil {
			return s, wrong
		}
		return said{entries: int64(n), bytes: int64(bytes)}, nil
	case "part", "whole":
		sum, err := hex.DecodeString(words[2])
		if err != nil {
			return s, wrong
		}
		return said{answer: &answer{whole: words[0] == "whole", size: int64(n), sum: sum}}, nil
	}
	return s, wrong
}

// Write hears what the other side says. It implements io.Writer.
func (l *Leg) Write(p []byte) (int, error) {
	l.line = append(l.line, p...)
	for {
		line, rest, whole := bytes.Cut(l.line, []byte("\n"))
		if !whole {
			if len(l.line) > maxLine {
				return 0, fmt.Errorf("the other side of the copy sent something unexpected: %.100q", l.line)
			}
			return len(p), nil
		}
		s, err := parseSaid(string(line))
		if err == nil {
			err = l.hear(s)
		}
		if err != nil {
			return 0, err
		}
		l.line = append([]byte(nil), rest...)
	}
}

// hear deals with a line. What nobody has asked for is against the protocol, and not waited with.
func (l *Leg) hear(s said) error {
	switch {
	case s.into != "":
		if !l.begun.CompareAndSwap(false, true) {
			return fmt.Errorf("the other side of the copy begins twice")
		}
		l.into <- s.into
		l.sender.greeted()
		return nil
	case s.answer != nil:
		select {
		case l.answers <- *s.answer:
			return nil
		default:
			return fmt.Errorf("the other side of the copy answered a question that was not asked")
		}
	}
	return l.sender.placed(s.entries, s.bytes)
}
