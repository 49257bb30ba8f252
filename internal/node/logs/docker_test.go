// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPL09Docker: where the runtime's log is a link to Docker's own (PID-10), it is read and followed like any other, and left
// for Docker to rotate (PL-09).
func TestPL09Docker(t *testing.T) {
	engine, pods := filepath.Join(t.TempDir(), "c1-json.log"), t.TempDir()
	log, err := os.Create(engine)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if _, err := io.WriteString(log, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(pods, "0.log")
	if err := os.Symlink(engine, path); err != nil {
		t.Fatal(err)
	}
	write(`{"log":"one \u003c\"x\"\u003e\n","stream":"stdout","time":"2026-11-20T10:00:00.1Z"}`,
		`{"log":"tw","stream":"stderr","time":"2026-11-20T10:00:01Z"}`,
		`{"log":"o\n","stream":"stderr","time":"2026-11-20T10:00:02Z"}`,
		`{"log":"of another stream\n","stream":"stdin","time":"2026-11-20T10:00:02Z"}`,
		`{"log":5}`, `{"stream":"stdout"}`, `{`)
	want := "2026-11-20T10:00:00.100000000Z one <\"x\">\n2026-11-20T10:00:01.000000000Z two\n"
	if got := get(t, path, corev1.PodLogOptions{Timestamps: true}); got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if got := get(t, path, corev1.PodLogOptions{TailLines: ptr[int64](1)}); got != "two\n" {
		t.Errorf("the last line is %q", got)
	}

	var ended atomic.Bool
	out, done := follow(t.Context(), path, corev1.PodLogOptions{TailLines: ptr[int64](1)}, func() bool { return !ended.Load() })
	out.want(t, "two")
	write(`{"log":"three\n","stream":"stdout","time":"2026-11-20T10:00:03Z"}`)
	out.want(t, "three")
	ended.Store(true)
	log.Close()
	if _, err := out.r.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}

	w := newWriter(t)
	w.path = path
	if err := NewRotator(RotatorConfig{MaxSize: 1, MaxFiles: 3, Runtime: w}).Rotate(t.Context(), start); err != nil {
		t.Error(err)
	}
	if got := files(t, path); !slices.Equal(got, []string{"0.log"}) {
		t.Errorf("Docker's log was rotated: %v", got)
	}
}
