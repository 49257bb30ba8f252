// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// writer is a runtime that writes the log of one container and can be told to reopen it.
type writer struct {
	t    testing.TB
	path string

	mu    sync.Mutex
	f     *os.File
	n     int
	ended atomic.Bool
}

func newWriter(t testing.TB) *writer {
	t.Helper()
	w := &writer{t: t, path: filepath.Join(t.TempDir(), "0.log")}
	if err := w.Reopen(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.f.Close() })
	return w
}

func (w *writer) Logs(context.Context) ([]Container, error) {
	return []Container{{ID: "c", Path: w.path}}, nil
}

// Reopen does as containerd: the new file is there before the old one is done with.
func (w *writer) Reopen(context.Context, string) error {
	f, err := os.OpenFile(w.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	w.write(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f != nil {
		w.f.Close()
	}
	w.f = f
	return nil
}

// write writes n numbered lines.
func (w *writer) write(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return
	}
	for range n {
		if _, err := fmt.Fprintf(w.f, "%s stdout F line %d\n", time.Now().Format(time.RFC3339Nano), w.n); err != nil {
			w.t.Error(err)
		}
		w.n++
	}
}

// end is the container's end: the log is closed, and a moment later the container counts as exited.
func (w *writer) end() {
	w.f.Close()
	time.AfterFunc(20*time.Millisecond, func() { w.ended.Store(true) })
}

func (w *writer) running() bool { return !w.ended.Load() }

// lines is an io.Writer that hands out lines.
type lines struct {
	*io.PipeWriter
	r *bufio.Reader
}

func newLines() *lines {
	r, w := io.Pipe()
	return &lines{w, bufio.NewReader(r)}
}

func (l *lines) want(t testing.TB, want string) {
	t.Helper()
	if got, err := l.r.ReadString('\n'); err != nil || got != want+"\n" {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}

// follow reads in the background; the result is to be had once.
func follow(ctx context.Context, path string, opts corev1.PodLogOptions, running func() bool) (*lines, chan error) {
	opts.Follow = true
	out, done := newLines(), make(chan error, 1)
	go func() {
		_, err := Read(ctx, path, &opts, running, out, out)
		out.CloseWithError(io.EOF)
		done <- err
	}()
	return out, done
}

func TestPL09Follow(t *testing.T) {
	w := newWriter(t)
	w.write(3)
	out, done := follow(t.Context(), w.path, corev1.PodLogOptions{TailLines: ptr[int64](1)}, w.running)
	out.want(t, "line 2")
	w.write(2)
	out.want(t, "line 3")
	out.want(t, "line 4")
	w.write(1)
	began := time.Now()
	w.end()
	out.want(t, "line 5")
	if _, err := out.r.ReadString('\n'); err != io.EOF {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > askSeldom-500*time.Millisecond { // by being asked, not by being told
		t.Errorf("noticed the end after %v", took)
	}
}

func TestPL09FollowStops(t *testing.T) {
	t.Run("with its context", func(t *testing.T) {
		w := newWriter(t)
		ctx, cancel := context.WithCancel(t.Context())
		w.write(1)
		out, done := follow(ctx, w.path, corev1.PodLogOptions{}, w.running)
		out.want(t, "line 0")
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("at the limit", func(t *testing.T) {
		w := newWriter(t)
		out, done := follow(t.Context(), w.path, corev1.PodLogOptions{LimitBytes: ptr[int64](7)}, w.running)
		w.write(1)
		if got, _ := io.ReadAll(out.r); string(got) != "line 0\n" {
			t.Errorf("%q", got)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("when its reader is gone", func(t *testing.T) {
		w := newWriter(t)
		w.write(1)
		r, pw := io.Pipe()
		r.Close()
		if _, err := Read(t.Context(), w.path, &corev1.PodLogOptions{Follow: true}, w.running, pw, pw); !errors.Is(err,
			io.ErrClosedPipe) {
			t.Error(err)
		}
	})
	t.Run("when the log is removed and the container gone", func(t *testing.T) {
		w := newWriter(t)
		w.write(1)
		out, done := follow(t.Context(), w.path, corev1.PodLogOptions{}, w.running)
		out.want(t, "line 0")
		if err := os.Remove(w.path); err != nil {
			t.Fatal(err)
		}
		w.write(1)
		out.want(t, "line 1")
		w.end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("when no log ever came", func(t *testing.T) {
		_, err := Read(t.Context(), filepath.Join(t.TempDir(), "0.log"), &corev1.PodLogOptions{Follow: true}, nil,
			io.Discard, io.Discard)
		if !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

func TestPL09FollowWaitsForTheLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "0.log")
	out, done := follow(t.Context(), path, corev1.PodLogOptions{},
		func() bool { _, err := os.Stat(dir + "/ended"); return err != nil })
	if err := os.WriteFile(path, []byte("2026-11-20T10:00:00Z stdout F hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out.want(t, "hello")
	if err := os.WriteFile(dir+"/ended", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A line's pieces come one by one; nobody sees half a line.
func TestPL09FollowPieces(t *testing.T) {
	w := newWriter(t)
	out, done := follow(t.Context(), w.path, corev1.PodLogOptions{}, w.running)
	for _, piece := range []string{"2026-11-20T10:00:00Z std", "out P one ", "\n2026-11-20T10:00:00Z stderr F err\n",
		"2026-11-20T10:00:00Z stdout F two\n"} {
		if _, err := w.f.WriteString(piece); err != nil {
			t.Fatal(err)
		}
	}
	out.want(t, "err")
	out.want(t, "one two")
	w.end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPL09FollowTruncation(t *testing.T) {
	w := newWriter(t)
	w.write(2)
	out, done := follow(t.Context(), w.path, corev1.PodLogOptions{}, w.running)
	out.want(t, "line 0")
	out.want(t, "line 1")
	if err := os.Truncate(w.path, 0); err != nil {
		t.Fatal(err)
	}
	w.write(1)
	out.want(t, "line 2")
	w.end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Rotation after rotation while lines are written: every line comes once and in order, to a fast reader and to one so
// slow that the files it has yet to read are compressed meanwhile.
func TestPL09FollowOverRotations(t *testing.T) {
	for _, slow := range []bool{false, true} {
		t.Run(fmt.Sprintf("slow=%v", slow), func(t *testing.T) {
			w := newWriter(t)
			rot := NewRotator(RotatorConfig{MaxSize: 1, MaxFiles: 100, Runtime: w})
			out, done := follow(t.Context(), w.path, corev1.PodLogOptions{}, w.running)
			const rounds, each = 20, 50
			w.write(1)
			out.want(t, "line 0") // it reads the first file
			wrote := make(chan int, 1)
			go func() {
				for i := range rounds {
					w.write(each)
					if err := rot.Rotate(t.Context(), start.Add(time.Duration(i)*time.Minute)); err != nil {
						t.Error(err)
					}
				}
				w.write(each)
				w.end()
				wrote <- w.n
			}()
			if slow {
				wrote <- <-wrote
			}
			read := 1
			for line, err := out.r.ReadString('\n'); err == nil; line, err = out.r.ReadString('\n') {
				if want := fmt.Sprintf("line %d\n", read); line != want && !t.Failed() {
					t.Errorf("%q, want %q", line, want)
				}
				read++
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if n := <-wrote; read != n {
				t.Errorf("%d of %d lines", read, n)
			}
		})
	}
}

// Where the user has no inotify instance left the log is looked at from time to time.
func TestFollowWithoutInotify(t *testing.T) {
	w := newWriter(t)
	out, _ := newOutput(&corev1.PodLogOptions{}, io.Discard, io.Discard)
	var got bytes.Buffer
	out.to = [streams]io.Writer{&got, &got}
	watcher := &watcher{names: map[string]bool{}}
	watcher.poll()
	defer watcher.stop()
	f := &follower{path: w.path, out: out, end: ending{running: w.running}, watcher: watcher}
	defer f.close()
	if err := f.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.write(3)
	time.AfterFunc(10*time.Millisecond, func() { w.ended.Store(true) })
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got.String() != "line 0\nline 1\nline 2\n" {
		t.Errorf("%q", got.String())
	}
}

// TestPL09FollowLateWriter (PL-09): a runtime on a busy machine, which is done with the old file long after the new one
// is there, has written all of it before the new one is read. Old code: after 300 ms the rest of the old file was
// passed over.
func TestPL09FollowLateWriter(t *testing.T) {
	w := newWriter(t)
	out, done := follow(t.Context(), w.path, corev1.PodLogOptions{}, w.running)
	w.write(1)
	out.want(t, "line 0")
	old := w.f
	if err := os.Rename(w.path, w.path+".20261120-120000"); err != nil {
		t.Fatal(err)
	}
	now, err := os.OpenFile(w.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.f, w.n = now, 2
	w.mu.Unlock()
	w.write(1)
	late := time.AfterFunc(time.Second, func() {
		_, err := fmt.Fprintf(old, "%s stdout F line 1\n", time.Now().Format(time.RFC3339Nano))
		if err := errors.Join(err, old.Close()); err != nil {
			t.Error(err)
		}
	})
	defer late.Stop()
	out.want(t, "line 1")
	out.want(t, "line 2")
	w.end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
