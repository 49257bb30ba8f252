// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// rotatedTime is how rotation puts the time into a file's name: audit-2026-01-02T15-04-05.000.log, or that with .gz.
const rotatedTime = "2006-01-02T15-04-05.000"

// busyOwners is how many users who have written more than their share have a log of their own.
const busyOwners = 16

// Busy are the logs, beside that at path, of users who have written more than their share: one each, and the last for
// all others.
func Busy(path string) []string {
	var all []string
	for i := range busyOwners {
		all = append(all, beside(path, fmt.Sprintf("-busy-%d", i+1)))
	}
	return append(all, beside(path, "-busy"))
}

// Refused is the log, beside that at path, of what clients without an identity were refused.
func Refused(path string) string { return beside(path, "-refused") }

func beside(path, suffix string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + suffix + ext
}

// Files returns the log at path and what it was rotated into, oldest first. A log that was never written to is no
// error; a folder that may not be read is.
func Files(path string) ([]string, error) {
	dir, base := filepath.Split(path)
	names, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(base)
	prefix := strings.TrimSuffix(base, ext) + "-"
	rotated := map[string]string{} // name without .gz: name
	current := false
	for _, e := range names {
		if e.Name() == base {
			current = true
			continue
		}
		plain := strings.TrimSuffix(e.Name(), ".gz")
		stamp, ok := strings.CutPrefix(strings.TrimSuffix(plain, ext), prefix)
		if !ok || !strings.HasSuffix(plain, ext) {
			continue
		}
		if _, err := time.Parse(rotatedTime, stamp); err != nil {
			continue
		}
		if rotated[plain] != plain { // both are there while one is being made of the other; the plain one is whole
			rotated[plain] = e.Name()
		}
	}
	var all []string
	for _, name := range rotated {
		all = append(all, filepath.Join(dir, name))
	}
	slices.Sort(all)
	if current {
		all = append(all, path)
	}
	return all, nil
}

// Event is an event and the line it was read from.
type Event struct {
	auditv1.Event
	Line []byte // valid until the next one
}

// maxLine bounds one event: two bodies of the largest object a server takes.
const maxLine = 16 << 20

// Read calls f for each event of the files that the filter takes, in their order, until f returns an error. It returns
// how many lines could not be read.
func Read(files []string, filter Filter, f func(Event) error) (unreadable int, err error) {
	for _, file := range files {
		n, err := readFile(file, filter, f)
		unreadable += n
		if errors.Is(err, fs.ErrNotExist) {
			continue // rotated away meanwhile
		}
		if err != nil {
			return unreadable, fmt.Errorf("%s: %w", file, err)
		}
	}
	return unreadable, nil
}

func readFile(file string, filter Filter, f func(Event) error) (unreadable int, err error) {
	in, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	var r io.Reader = in
	if strings.HasSuffix(file, ".gz") {
		unzip, err := gzip.NewReader(in)
		if errors.Is(err, io.EOF) || errors.Is(err, gzip.ErrHeader) {
			return 1, nil
		} else if err != nil {
			return 0, err
		}
		r = unzip
	}
	l := lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	for {
		line, err := l.next()
		whole := err == nil
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) {
			return unreadable + 1, nil // compressed only in part
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return unreadable, err
		}
		switch ok, err := take(line, filter, f); {
		case err != nil:
			return unreadable, err
		case !ok && whole: // a line without an end is one that is being written
			unreadable++
		}
		if !whole {
			return unreadable, nil
		}
	}
}

// take hands one line on. It says whether the line is an event.
func take(line []byte, filter Filter, f func(Event) error) (bool, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return true, nil
	}
	if line[0] != '{' || line[len(line)-1] != '}' {
		return false, nil
	}
	if !filter.mayTake(line) {
		return true, nil
	}
	e := Event{Line: line}
	if err := json.Unmarshal(line, &e.Event); err != nil {
		return false, nil
	}
	if !filter.Takes(&e.Event) {
		return true, nil
	}
	return true, f(e)
}

// lineReader reads lines of any length up to maxLine; of a longer one it keeps nothing.
type lineReader struct {
	r    *bufio.Reader
	long []byte
}

// next returns a line without its end. With an error the line is what was there of it.
func (l *lineReader) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if err == nil && len(l.long) == 0 {
			return part[:len(part)-1], nil
		}
		if len(l.long)+len(part) <= maxLine {
			l.long = append(l.long, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimSuffix(l.long, []byte("\n")), err
	}
}
