// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/wherryproject/wherry/internal/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childMark) != "" { // containerd leaves goroutines behind
		os.Exit(m.Run())
	}
	leaktest.Main(m)
}

func TestPL09Parse(t *testing.T) {
	stamp := "2026-11-20T10:00:00.000000001Z"
	at := time.Date(2026, 11, 20, 10, 0, 0, 1, time.UTC)
	for _, tc := range []struct {
		line string
		want Entry
		ok   bool
	}{
		{stamp + " stdout F hello world", Entry{at, Stdout, true, []byte("hello world")}, true},
		{stamp + " stderr P piece\n", Entry{at, Stderr, false, []byte("piece")}, true},
		{stamp + " stdout F ", Entry{at, Stdout, true, []byte("")}, true},
		{stamp + " stdout F", Entry{at, Stdout, true, nil}, true},
		{stamp + " stdout F:tag:more  two blanks ", Entry{at, Stdout, true, []byte(" two blanks ")}, true},
		{stamp + " stdout F crlf\r", Entry{at, Stdout, true, []byte("crlf\r")}, true},
		{stamp + " stdout F \x00\xff日本", Entry{at, Stdout, true, []byte("\x00\xff日本")}, true},
		{"", Entry{}, false},
		{"\n", Entry{}, false},
		{"hello", Entry{}, false},
		{"yesterday stdout F x", Entry{}, false},
		{"2026-11-20T0:00:00Z stdout F x", Entry{}, false},
		{"2026-11-20T10:00:00,1Z stdout F x", Entry{}, false},
		{"2026-11-20T10:00:00+24:60 stdout F x", Entry{}, false},
		{stamp, Entry{}, false},
		{stamp + " stdout", Entry{}, false},
		{stamp + " stdlog F x", Entry{}, false},
		{stamp + " stdout X x", Entry{}, false},
		{strings.Repeat("\x00", 100), Entry{}, false},
	} {
		e, ok := Parse([]byte(tc.line))
		if ok != tc.ok || ok && (!e.Time.Equal(tc.want.Time) || e.Stream != tc.want.Stream || e.Full != tc.want.Full ||
			!bytes.Equal(e.Text, tc.want.Text)) {
			t.Errorf("%q: %+v %v", tc.line, e, ok)
		}
	}
}

func (s Stream) String() string { return [...]string{"stdout", "stderr"}[s] }

func FuzzParse(f *testing.F) {
	for _, s := range []string{"2026-11-20T10:00:00.1Z stdout F x", "2026-11-20T10:00:00+02:00 stderr P:x y z\n",
		"x stdout F", " ", "2026-11-20T10:00:00Z stdout F", "2026-11-20T0:00:00Z stdout F x",
		`{"log":"x\n","stream":"stdout","time":"2026-11-20T10:00:00Z"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := Parse(line)
		var h heads
		for range 2 {
			if same, is := h.parse(line); is != ok || ok && (!same.Time.Equal(e.Time) || same.Stream != e.Stream ||
				same.Full != e.Full || !bytes.Equal(same.Text, e.Text)) {
				t.Errorf("after itself %q is %+v, %t", line, same, is)
			}
		}
		if !ok || bytes.HasPrefix(line, []byte{'{'}) {
			return // Docker's may have a newline within
		}
		if bytes.IndexByte(bytes.TrimSuffix(line, []byte{'\n'}), '\n') >= 0 {
			return // that is no line: who reads a log ends one there
		}
		tag := "P"
		if e.Full {
			tag = "F"
		}
		again, ok := Parse(fmt.Appendf(nil, "%s %s %s %s", e.Time.Format(time.RFC3339Nano), e.Stream, tag, e.Text))
		if !ok || again.Stream != e.Stream || again.Full != e.Full || !bytes.Equal(again.Text, e.Text) ||
			!again.Time.Equal(e.Time) {
			t.Errorf("%q became %+v, then %+v", line, e, again)
		}
	})
}

// PL-09: lines that follow each other are parsed as each by itself is.
func TestPL09Heads(t *testing.T) {
	const at = "2026-11-20T10:00:00.123456789Z "
	lines := []string{at + "stdout F one", at + "stdout F ", at + "stdout F", at + "stdout F  two", at + "stdout F:x three", at + "stdout P four\n",
		at + "stderr F five", at + "other F no", "", "no", at, `{"log":"a b F x\n","stream":"stdout","time":"2026-11-20T10:00:00.1Z"}`,
		`{"log":"","stream":"stderr","time":"2026-11-20T10:00:00.1Z"}`, "2026-11-20T10:00:01Z stdout F six", at + "stdout F one"}
	for i := range 10_000 {
		var h heads
		for _, k := range []int{i % len(lines), i / 7 % len(lines), i / 91 % len(lines), i / 91 % len(lines)} {
			got, ok := h.parse([]byte(lines[k]))
			want, is := Parse([]byte(lines[k]))
			if ok != is || !got.Time.Equal(want.Time) || got.Stream != want.Stream || got.Full != want.Full || string(got.Text) != string(want.Text) {
				t.Fatalf("%q: %+v, %t; by itself %+v, %t", lines[k], got, ok, want, is)
			}
		}
	}
}

// FuzzRead reads what no runtime would write.
func FuzzRead(f *testing.F) {
	f.Add([]byte("2026-11-20T10:00:00.1Z stdout F x\n2026-11-20T10:00:00.1Z stdout P y"), int64(1), int64(3))
	f.Add([]byte("\n\n\x00\n"), int64(0), int64(-1))
	f.Fuzz(func(t *testing.T, content []byte, lines, limit int64) {
		opts := &corev1.PodLogOptions{Timestamps: true}
		if lines >= 0 {
			opts.TailLines = &lines
		}
		if limit >= 0 {
			opts.LimitBytes = &limit
		}
		path := filepath.Join(t.TempDir(), "0.log")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := Read(context.Background(), path, opts, nil, &out, &out); err != nil {
			t.Fatal(err)
		}
		if limit >= 0 && int64(out.Len()) > limit {
			t.Errorf("%d bytes, limit %d", out.Len(), limit)
		}
	})
}

// start is when the logs of the tests begin; the n-th entry is n seconds later.
var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// logFile writes entries given as "stdout F text", one a second.
func logFile(t testing.TB, entries ...string) string {
	t.Helper()
	var b bytes.Buffer
	for i, e := range entries {
		fmt.Fprintf(&b, "%s %s\n", start.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano), e)
	}
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func get(t testing.TB, path string, opts corev1.PodLogOptions) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := Read(context.Background(), path, &opts, nil, &out, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func ptr[T any](v T) *T { return &v }

func TestPL09Read(t *testing.T) {
	path := logFile(t, "stdout F one", "stderr P tw", "stdout F ", "stderr F o", "corrupt", "stdout F drei\r",
		"stdout F 四四四", "stdout P unfinished")
	since := func(n int) *metav1.Time { return &metav1.Time{Time: start.Add(time.Duration(n) * time.Second)} }
	for _, tc := range []struct {
		what string
		opts corev1.PodLogOptions
		want string
	}{
		{"all", corev1.PodLogOptions{}, "one\n\ntwo\ndrei\r\n四四四\nunfinished"},
		{"stdout", corev1.PodLogOptions{Stream: ptr(corev1.LogStreamStdout)}, "one\n\ndrei\r\n四四四\nunfinished"},
		{"stderr", corev1.PodLogOptions{Stream: ptr(corev1.LogStreamStderr)}, "two\n"},
		{"all by name", corev1.PodLogOptions{Stream: ptr(corev1.LogStreamAll), TailLines: ptr[int64](1)}, "unfinished"},
		{"tail 0", corev1.PodLogOptions{TailLines: ptr[int64](0)}, ""},
		{"tail 2", corev1.PodLogOptions{TailLines: ptr[int64](2)}, "四四四\nunfinished"},
		{"tail 4", corev1.PodLogOptions{TailLines: ptr[int64](4)}, "two\ndrei\r\n四四四\nunfinished"},
		{"tail 100", corev1.PodLogOptions{TailLines: ptr[int64](100)}, "one\n\ntwo\ndrei\r\n四四四\nunfinished"},
		{"tail of stderr", corev1.PodLogOptions{TailLines: ptr[int64](1), Stream: ptr(corev1.LogStreamStderr)},
			"two\n"},
		{"since a line's first piece", corev1.PodLogOptions{SinceTime: since(1)}, "\ntwo\ndrei\r\n四四四\nunfinished"},
		{"since a line's second piece", corev1.PodLogOptions{SinceTime: since(3)}, "drei\r\n四四四\nunfinished"},
		{"since the future", corev1.PodLogOptions{SinceTime: since(100)}, ""},
		{"since seconds", corev1.PodLogOptions{SinceSeconds: ptr(int64(time.Since(start)/time.Second) - 5 + 1)}, ""},
		{"tail, then since", corev1.PodLogOptions{TailLines: ptr[int64](3), SinceTime: since(6)}, "四四四\nunfinished"},
		{"limit", corev1.PodLogOptions{LimitBytes: ptr[int64](6)}, "one\n\nt"},
		{"limit beyond", corev1.PodLogOptions{LimitBytes: ptr[int64](1000), TailLines: ptr[int64](1)}, "unfinished"},
		{"limit with timestamps", corev1.PodLogOptions{LimitBytes: ptr[int64](32), Timestamps: true},
			"2026-11-20T10:00:00.000000000Z o"},
		{"timestamps", corev1.PodLogOptions{Timestamps: true, TailLines: ptr[int64](4)}, "" +
			"2026-11-20T10:00:01.000000000Z two\n2026-11-20T10:00:05.000000000Z drei\r\n" +
			"2026-11-20T10:00:06.000000000Z 四四四\n2026-11-20T10:00:07.000000000Z unfinished"},
	} {
		if tc.opts.SinceSeconds != nil && start.After(time.Now()) {
			continue // the machine's clock is behind the test's
		}
		if tc.what == "since seconds" {
			tc.opts.SinceSeconds = ptr(int64(time.Since(start)/time.Second) + 1)
			tc.want = "one\n\ntwo\ndrei\r\n四四四\nunfinished"
		}
		if got := get(t, path, tc.opts); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.what, got, tc.want)
		}
	}
	t.Run("two writers", func(t *testing.T) {
		var out, err bytes.Buffer
		if _, e := Read(t.Context(), path, &corev1.PodLogOptions{}, nil, &out, &err); e != nil {
			t.Fatal(e)
		}
		if out.String() != "one\n\ndrei\r\n四四四\nunfinished" || err.String() != "two\n" {
			t.Errorf("%q and %q", out.String(), err.String())
		}
		if _, e := Read(t.Context(), path, &corev1.PodLogOptions{}, nil, nil, nil); e != nil {
			t.Error(e)
		}
	})
	t.Run("not there", func(t *testing.T) {
		if _, err := Read(t.Context(), path+"x", &corev1.PodLogOptions{}, nil, io.Discard, io.Discard); !errors.Is(err,
			os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("a writer that fails", func(t *testing.T) {
		r, w := io.Pipe()
		r.CloseWithError(errors.New("gone away"))
		if _, err := Read(t.Context(), path, &corev1.PodLogOptions{}, nil, w, w); err == nil ||
			err.Error() != "gone away" {
			t.Error(err)
		}
	})
}

// A torn last line of a crash, and one that is just being written.
func TestPL09TornLine(t *testing.T) {
	for _, tc := range []struct{ add, want string }{
		{"2026-11-20T11:00:00Z stdout F torn", "one\ntorn\n"},
		{"2026-11-20T11:00:00Z stdo", "one\n"},
		{"\x00\x00\x00", "one\n"},
	} {
		path := logFile(t, "stdout F one")
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(tc.add); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if got := get(t, path, corev1.PodLogOptions{}); got != tc.want {
			t.Errorf("%q: %q", tc.add, got)
		}
	}
}

func TestPL09LongLines(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	t.Run("in one entry", func(t *testing.T) {
		path := logFile(t, "stdout F first", "stdout F "+long, "stdout F last")
		if got := get(t, path, corev1.PodLogOptions{TailLines: ptr[int64](2)}); got != long+"\nlast\n" {
			t.Errorf("%d bytes", len(got))
		}
	})
	t.Run("in pieces", func(t *testing.T) {
		entries := []string{"stdout F first"}
		for at := 0; at < 3*len(long); at += 16 << 10 {
			entries = append(entries, "stdout P "+long[at%len(long):at%len(long)+16<<10])
		}
		path := logFile(t, append(entries, "stdout F !", "stdout F last")...)
		if got := get(t, path, corev1.PodLogOptions{TailLines: ptr[int64](2)}); got != long+long+long+"!\nlast\n" {
			t.Errorf("%d bytes, want %d", len(got), 3*len(long)+7)
		}
		got := get(t, path, corev1.PodLogOptions{Timestamps: true})
		if n := strings.Count(got, "2026-11-20T"); n != 3 {
			t.Errorf("%d timestamps on 3 lines", n)
		}
	})
	t.Run("too long to be a log", func(t *testing.T) {
		path := logFile(t, "stdout F first", "stdout F "+strings.Repeat(long, 17), "stdout F last")
		if got := get(t, path, corev1.PodLogOptions{}); got != "first\nlast\n" {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// Whatever the entries, tail gives the last lines of the whole.
func TestPL09TailIsTheEndOfTheWhole(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		count := rapid.IntRange(0, 40).Draw(t, "entries")
		var content bytes.Buffer
		var lines []string
		var open [2]string
		for i := range count {
			stream := rapid.IntRange(0, 1).Draw(t, "stream")
			text := fmt.Sprintf("<%d %s>", i, strings.Repeat("x",
				rapid.SampledFrom([]int{0, 1, 100, 40000}).Draw(t, "length")))
			full := rapid.Bool().Draw(t, "full")
			if i >= count-2 { // unfinished lines at the end have tests of their own
				full = true
				stream = i % 2
			}
			fmt.Fprintf(&content, "2026-11-20T10:00:00Z %s %s %s\n", Stream(stream),
				map[bool]string{true: "F", false: "P"}[full], text)
			open[stream] += text
			if full {
				lines = append(lines, open[stream]+"\n")
				open[stream] = ""
			}
		}
		if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		k := rapid.IntRange(0, len(lines)+2).Draw(t, "tail")
		var out bytes.Buffer
		if _, err := Read(context.Background(), path, &corev1.PodLogOptions{TailLines: ptr(int64(k))}, nil, &out,
			&out); err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(lines[max(len(lines)-k, 0):], ""); out.String() != want {
			t.Fatalf("tail %d: %.300q\nwant %.300q", k, out.String(), want)
		}
	})
}

func TestPL09TailReadsOnlyTheEnd(t *testing.T) {
	path := logFile(t, "stdout F first")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	line := []byte("2026-11-20T10:00:00Z stdout F " + strings.Repeat("x", 1000) + "\n")
	if _, err := f.Write(bytes.Repeat(line, 100000)); err != nil { // 100 MB
		t.Fatal(err)
	}
	counted := &countingReaderAt{ReaderAt: mustOpen(t, path)}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	at, skip, err := tail(counted, info.Size(), 10, func(Stream) bool { return true })
	if err != nil || skip != 0 || at != info.Size()-int64(10*len(line)) {
		t.Errorf("start %d of %d, skip %d, %v", at, info.Size(), skip, err)
	}
	if counted.n > 1<<20 {
		t.Errorf("%d bytes read for 10 lines", counted.n)
	}
}

type countingReaderAt struct {
	io.ReaderAt
	n int
}

func (c *countingReaderAt) ReadAt(p []byte, at int64) (int, error) {
	c.n += len(p)
	return c.ReaderAt.ReadAt(p, at)
}

func mustOpen(t testing.TB, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestPL09ManyReadersAtOnce(t *testing.T) {
	path := logFile(t, "stdout F one", "stderr F two")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got := get(t, path, corev1.PodLogOptions{Follow: true}); got != "one\ntwo\n" {
				t.Errorf("%q", got)
			}
		})
	}
	wg.Wait()
}
