// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// Replay writes what a container printed by its log file, from an offset of the file on, and returns the offset of what
// it has not written: of a line that is not whole yet. No more than the last most bytes of the file are read. A file
// that has become shorter was begun anew, and is read from its beginning.
func Replay(path string, from, most int64, stdout, stderr io.Writer) (to int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return ReplayFrom(f, info.Size(), from, most, stdout, stderr)
}

// ReplayFrom is [Replay] of a log that is open and has so many bytes.
func ReplayFrom(log io.ReaderAt, size, from, most int64, stdout, stderr io.Writer) (to int64, err error) {
	if size < from {
		from = 0
	}
	torn := size-from > most // it begins in the middle of a line
	if torn {
		from = size - most
	}
	lines := bufio.NewReader(io.NewSectionReader(log, from, size-from))
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return from, nil
		}
		if err != nil {
			return from, err
		}
		from += int64(len(line))
		if torn {
			torn = false
			continue
		}
		if err := replayLine(line, stdout, stderr); err != nil {
			return from, err
		}
	}
}

func replayLine(line []byte, stdout, stderr io.Writer) error {
	e, ok := Parse(line)
	to := map[Stream]io.Writer{Stdout: stdout, Stderr: stderr}[e.Stream]
	if !ok || to == nil {
		return nil
	}
	text := e.Text
	if e.Full {
		text = append(text[:len(text):len(text)], '\n')
	}
	_, err := to.Write(text)
	return err
}
