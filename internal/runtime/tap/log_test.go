// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// logged writes everything that is new in a ring to a log.
func logged(t *testing.T, l *logFile, c *cursor, last bool) {
	t.Helper()
	var pieces []piece
	for l.ring.more(c) {
		buf := make([]byte, 700)
		n, s, at := l.ring.next(c, buf, false)
		pieces = append(pieces, piece{s, at, buf[:n]})
	}
	if err := l.write(pieces, c.position(), last); err != nil {
		t.Fatal(err)
	}
}

func openTestLog(t *testing.T, r *ring, path string) *logFile {
	t.Helper()
	l, err := openLog(r, path, &sync.Pool{})
	if err != nil {
		t.Fatal(err)
	}
	l.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC) }
	t.Cleanup(l.close)
	return l
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "2026-01-02T03:04:05.000006Z ", "")
}

// The log is in the CRI's format: whole lines, parts of those that are too long, what has no end at the very end.
func TestLogFormat(t *testing.T) {
	r, ringPath := testRing(t, 4*chunk)
	path := filepath.Join(filepath.Dir(ringPath), "log")
	l := openTestLog(t, r, path)
	c := r.start()
	put(r, stdout, "one\ntw")
	put(r, stderr, "an err")
	logged(t, l, c, false)
	put(r, stdout, "o\r\n\n"+strings.Repeat("x", longestLine+10)+"\nrest")
	put(r, stderr, "or\n")
	logged(t, l, c, false)
	want := "stdout F one\nstdout F two\nstdout F \nstdout P " + strings.Repeat("x", longestLine) + "\nstdout F " + strings.Repeat("x", 10) + "\nstderr F an error\n"
	if got := read(t, path); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	logged(t, l, c, true)
	if got := read(t, path); got != want+"stdout P rest\n" {
		t.Errorf("at the end: %q", got[len(want):])
	}
}

// EC-16: a process that is killed before, while or after it writes to the log, and before it has noted so, neither loses a line
// nor writes one twice; also when the log was renamed meanwhile.
func TestLogKilledWhileWriting(t *testing.T) {
	for _, written := range []int{0, 1, 30, 1 << 20} {
		for _, renamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bytes written, renamed %v", written, renamed), func(t *testing.T) {
				r, ringPath := testRing(t, 4*chunk)
				dir := filepath.Dir(ringPath)
				path, all := filepath.Join(dir, "log"), filepath.Join(dir, "log")
				l := openTestLog(t, r, path)
				c := r.start()
				put(r, stdout, "line 1\nline")
				put(r, stderr, "err")
				logged(t, l, c, false)
				size := len(read(t, path)) // without stamps, but there is one line only
				put(r, stdout, " 2\nline 3\nli")
				before := r.h.logged[stdout].Load()
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				logged(t, l, c, false)
				// As if it had been killed amid that: the note is there, what was to be noted afterwards is not.
				r.h.intent.valid.Store(1)
				r.h.logged[stdout].Store(before)
				now, err := os.Stat(path)
				if err != nil || now.Size() <= info.Size() || size == 0 {
					t.Fatal(err, now.Size(), info.Size())
				}
				if err := os.Truncate(path, min(now.Size(), info.Size()+int64(written))); err != nil {
					t.Fatal(err)
				}
				if renamed {
					all = path + ".20260101-000000"
					if err := os.Rename(path, all); err != nil {
						t.Fatal(err)
					}
				}
				next, err := openRing(ringPath)
				if err != nil {
					t.Fatal(err)
				}
				defer next.close()
				l = openTestLog(t, next, path)
				c = next.start()
				logged(t, l, c, false)
				put(next, stdout, "ne 4\n")
				put(next, stderr, "or\n")
				logged(t, l, c, true)
				got := read(t, path)
				if renamed {
					got = read(t, all) + got
				}
				if got != "stdout F line 1\nstdout F line 2\nstdout F line 3\nstdout F line 4\nstderr F error\n" {
					t.Errorf("%q", got)
				}
			})
		}
	}
}

// needs is up to where the log needs the ring.
func (l *logFile) needs() uint64 {
	return min(l.ring.h.logged[stdout].Load(), l.ring.h.logged[stderr].Load())
}

// A line whose end does not come does not keep the ring from letting go: it is logged in parts.
func TestLogOfLineThatDoesNotEnd(t *testing.T) {
	r, ringPath := testRing(t, 4*chunk)
	path := filepath.Join(filepath.Dir(ringPath), "log")
	l := openTestLog(t, r, path)
	c := r.start()
	put(r, stdout, "prompt> ")
	for range 6 {
		if to := r.needed(); to > l.needs() {
			t.Fatal("the log needs what the ring has to let go")
		}
		put(r, stderr, strings.Repeat("e", chunk-1)+"\n")
		logged(t, l, c, false)
	}
	put(r, stdout, "command\n")
	logged(t, l, c, true)
	if got := read(t, path); strings.Count(got, "stdout P prompt> \n") != 1 || strings.Count(got, "stdout F command\n") != 1 {
		t.Errorf("%q", strings.ReplaceAll(got, "e", ""))
	}
}

// A batch of the shortest lines, which become forty times as long in the log, is not formatted as a whole: sixty
// containers that print them must not take 500 MB of memory.
func TestLogOfShortLines(t *testing.T) {
	r, ringPath := testRing(t, 4*chunk)
	path := filepath.Join(filepath.Dir(ringPath), "log")
	l := openTestLog(t, r, path)
	c := r.start()
	put(r, stderr, "begun")
	put(r, stdout, strings.Repeat("\n", chunk-1)+"o")
	put(r, stderr, "\n"+strings.Repeat("e\n", chunk/4))
	put(r, stdout, "\n")
	raw := make([]byte, logBatch)
	var pieces []piece
	for r.more(c) {
		n, s, at := r.next(c, raw, false)
		pieces, raw = append(pieces, piece{s, at, raw[:n]}), raw[n:]
	}
	if err := l.write(pieces, c.position(), false); err != nil {
		t.Fatal(err)
	}
	if cap(l.text) > 1<<20 {
		t.Errorf("%d bytes of text are kept", cap(l.text))
	}
	if logged := l.logged(); logged[stdout] != c.position() || logged[stderr] != c.position() {
		t.Errorf("logged up to %v, want %d", logged, c.position())
	}
	out, errOut := strings.Repeat("stdout F \n", chunk-1), "stderr F begun\n"+strings.Repeat("stderr F e\n", chunk/4)
	if got := read(t, path); got != out+errOut+"stdout F o\n" {
		t.Errorf("%d bytes, want %d: %.100q", len(got), len(out+errOut+"stdout F o\n"), got)
	}
}
