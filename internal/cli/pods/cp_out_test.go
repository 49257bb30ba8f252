// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/copyfiles"
	"github.com/wherryproject/wherry/internal/cli/session"
)

var (
	errLine    = session.LostError{Err: errors.New("the connection was lost")}
	schemaPods = schema.GroupResource{Resource: "pods"}
)

// DA-09: of what ends a copy in its middle, it is gone on after what may pass and after nothing else, and not for ever;
// what is told in the end is what came first.
func TestPersist(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	away := apierrors.NewServiceUnavailable("the agent is not ready")
	for what, c := range map[string]struct {
		ends  []error // of each attempt; the last one goes on for ever
		tries int     // 0: for a minute
		says  string
	}{
		"well":                  {[]error{nil}, 1, ""},
		"the server comes back": {[]error{errLine, refused, away, io.EOF, nil}, 5, ""},
		"it never does": {[]error{errLine, refused}, 0,
			"the copy was cut after 2 of 4 MiB, and could not reconnect within 1m0s: dial: connection refused\nit starts over"},
		"the pod is gone": {[]error{errLine, apierrors.NewNotFound(schemaPods, "web")}, 2,
			`the copy was cut after 2 of 4 MiB, and cannot go on: pods "web" not found`},
		"its agent comes back later":   {[]error{errLine, notYet{apierrors.NewNotFound(schemaPods, "web")}, nil}, 3, ""},
		"the disk is full":             {[]error{errLine, final{syscall.ENOSPC}}, 2, "no space left"},
		"the toolbox has told why":     {[]error{&cmdline.Exit{Code: 1}}, 1, "exit code 1"},
		"nobody was there from outset": {[]error{refused}, 1, "connection refused"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := cutInTheMiddle(t)
				defer u.Close()
				tries, began := 0, time.Now()
				way := course{reached: func() string { return u.Reached().String() },
					amount: func() string { return "2 of 4 MiB" }, next: "it starts over"}
				err := way.persist(t.Context(), io.Discard,
					func(after string) error {
						if (after != "") != (tries > 0) {
							t.Errorf("attempt %d is for what comes after %q", tries, after)
						}
						end := c.ends[min(tries, len(c.ends)-1)]
						tries++
						return end
					})
				if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %q", err, c.says)
				}
				if c.tries > 0 && tries != c.tries {
					t.Errorf("%d attempts, want %d", tries, c.tries)
				}
				if took := time.Since(began); c.tries == 0 && (took < cutPatience || took > cutPatience+2*cutPauses) {
					t.Errorf("it was given up after %s", took)
				}
			})
		})
	}
}

// What stops on this side is final, whatever the session says of it; what was cut is not.
func TestOnce(t *testing.T) {
	for what, c := range map[string]struct {
		archive []byte
		end     error
		final   bool
		says    string
	}{
		"cut":              {archiveOf(t, "d", 1<<20)[:4096], errLine, false, "lost"},
		"a name from afar": {archiveOf(t, "../x", 10), nil, true, "outside the folder"},
		"whole":            {archiveOf(t, "d", 10), nil, false, ""},
	} {
		t.Run(what, func(t *testing.T) {
			u, err := copyfiles.New(t.TempDir(), "d", func(string, string) {})
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			o := other{run: func(_ context.Context, to cmdline.Terminal, _ ask.Archive) (int, error) {
				if _, err := to.Out.Write(c.archive); err != nil {
					return 0, err
				}
				return 0, c.end
			}}
			err = (&cpFlags{}).once(t.Context(), o, ask.Archive{}, io.Discard,
				newMeter(cmdline.Terminal{Err: io.Discard}, true), u)
			_, final := errors.AsType[final](err)
			if final != c.final || (err == nil) != (c.says == "") ||
				err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, final %t", err, final)
			}
		})
	}
}

func archiveOf(t *testing.T, name string, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(size),
		Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cutInTheMiddle is one that has had the first part of a file.
func cutInTheMiddle(t *testing.T) *copyfiles.Unpacker {
	t.Helper()
	u, err := copyfiles.New(t.TempDir(), "d", func(string, string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := u.From(bytes.NewReader(archiveOf(t, "d", 1<<20)[:4096])); !copyfiles.Cut(err) {
		t.Fatal(err)
	}
	return u
}

// DA-09: a copy that is called off when its file has its name already is whole, and nobody is told otherwise; one of
// which something is missing is not.
func TestInterruptedAtTheEnd(t *testing.T) {
	header := tar.Header{Typeflag: tar.TypeReg, Name: "core", Mode: 0o600, Size: 1000}
	folder := tar.Header{Typeflag: tar.TypeDir, Name: "core", Mode: 0o700}
	inFolder := header
	inFolder.Name = "core/1"
	for what, c := range map[string]struct {
		entries []tar.Header
		left    int // bytes of the archive that do not come
		whole   bool
	}{
		"the end of the archive is missing": {[]tar.Header{header}, 512, true},
		"one block of the file is missing":  {[]tar.Header{header}, 3 * 512, false},
		"a folder may have more files":      {[]tar.Header{folder, inFolder}, 512, false},
		"nothing is missing":                {[]tar.Header{folder, inFolder}, 0, true},
	} {
		t.Run(what, func(t *testing.T) {
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			for _, h := range c.entries {
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(make([]byte, h.Size)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			ctx, interrupt := context.WithCancel(t.Context())
			o := other{container: "main", words: "container main",
				run: func(ctx context.Context, t cmdline.Terminal, _ ask.Archive) (int, error) {
					defer interrupt()
					// each is taken before the next one
					for block := range slices.Chunk(archive.Bytes()[:archive.Len()-c.left], 512) {
						if _, err := t.Out.Write(block); err != nil {
							return 1, err
						}
					}
					interrupt()
					return 130, ctx.Err()
				}}
			err := (&cpFlags{quiet: true}).between(ctx, cmdline.Terminal{Out: io.Discard, Err: io.Discard}, o,
				place{pod: "web", path: "/tmp/core"}, place{path: t.TempDir()})
			if (err == nil) != c.whole || err != nil && !strings.Contains(err.Error(),
				"/tmp/core was not copied completely") {
				t.Errorf("whole: %t, and it says %v", c.whole, err)
			}
		})
	}
}
