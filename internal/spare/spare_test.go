// SPDX-License-Identifier: Apache-2.0

package spare

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOver(t *testing.T) {
	const mega = 1 << 20
	var w work
	for i, c := range []struct {
		computed time.Duration
		resident int64
		want     bool
		why      string
	}{
		{2000 * time.Millisecond, 200 * mega, false, "it starts"},
		{2100 * time.Millisecond, 200 * mega, true, "the start is over"},
		{2200 * time.Millisecond, 110 * mega, false, "it was given back just now"},
		{2300 * time.Millisecond, 120 * mega, false, "it has not grown much"},
		{2700 * time.Millisecond, 150 * mega, false, "it works"},
		{2800 * time.Millisecond, 150 * mega, true, "the work is over"},
		{2850 * time.Millisecond, 145 * mega, false, "most was needed after all"},
		{2900 * time.Millisecond, 150 * mega, false, "it has not grown since"},
		{3000 * time.Millisecond, 100 * mega, false, "it has become smaller by itself"},
		{3100 * time.Millisecond, 124 * mega, true, "and has grown again, little by little"},
	} {
		if got := w.over(c.computed, c.resident); got != c.want {
			t.Errorf("look %d: %v, want %v: %s", i, got, c.want, c.why)
		}
	}
}

func TestReadOnly(t *testing.T) {
	maps := `00400000-048e1000 r-xp 00000000 fe:00 9977881                            /opt/a b/wherry
048e1000-0a682000 r--p 044e1000 fe:00 9977881                            /opt/a b/wherry (deleted)
0a682000-0a80b000 rw-p 0a282000 fe:00 9977881                            /opt/a b/wherry
0a80b000-0c86d000 rw-p 00000000 00:00 0
3ff00000-3ff01000 r-xp 0ac90000 fe:00 9977881                            /opt/a b/wherry.so
7f00a000-7f00b000 r--s 00000000 fe:00 9977881                            /opt/a b/wherry
7f00c000-7f00d000 r--p 00000000 00:00 0                                  [vvar]
`
	got := readOnly([]byte(maps), "/opt/a b/wherry")
	want := []span{{0x400000, 0x48e1000}, {0x48e1000, 0xa682000}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %x, want %x", got, want)
	}
}

// After it has given its garbage and its pages back a process has fewer, and goes on.
func TestGive(t *testing.T) {
	garbage := bytes.Repeat([]byte{1}, 64<<20)
	with, err := resident()
	runtime.KeepAlive(garbage)
	if err := errors.Join(err, give()); err != nil {
		t.Fatal(err)
	}
	if without, err := resident(); err != nil || with-without < 60<<20 {
		t.Errorf("%d bytes before, %d after (%v)", with, without, err)
	}
}

// RS-01: a process that has no descriptor left goes on, and looks again later.
func TestNoDescriptors(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	var w work
	err := w.look()
	if rerr := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); rerr != nil {
		t.Fatal(rerr)
	}
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("a look without a descriptor: %v", err)
	}
	if err := w.look(); err != nil {
		t.Errorf("a look with one: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("it ends with %v", err)
	}
}
