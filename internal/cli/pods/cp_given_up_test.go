// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/copyfiles"
)

// DA-09: a copy into a pod whose server dies and stays away is given up with words that say how far it was, and the
// same command goes on with it: by the same token, to which the parts in the pod belong. Another command does not, nor
// does the same one much later, or once more after it has succeeded.
func TestGivenUp(t *testing.T) {
	dir, local := t.TempDir(), file(t)
	synctest.Test(t, func(t *testing.T) {
		var tokens []string
		dead := true
		o := other{id: "uid", container: "main", words: "container main",
			run: func(_ context.Context, to cmdline.Terminal, a ask.Archive) (int, error) {
				if dead && len(tokens) > 0 && tokens[len(tokens)-1] == a.Keep {
					return 125, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				tokens = append(tokens, a.Keep)
				if _, err := io.WriteString(to.Out, "wherry-copy 1 folder\n"); err != nil {
					return 0, err
				}
				if dead {
					_, _ = io.ReadFull(to.In, make([]byte, 100))
					return 125, errLine
				}
				_, err := io.Copy(io.Discard, to.In)
				return 0, err
			}}
		cp := func(to string) error {
			return (&cpFlags{quiet: true, givenUp: givenUp(dir)}).between(t.Context(),
				cmdline.Terminal{Out: io.Discard, Err: io.Discard}, o, place{path: local}, place{pod: "web", path: to})
		}
		err := cp("/tmp")
		if err == nil || !strings.Contains(err.Error(), "the copy was cut after 0.0 of 0.0 MiB") ||
			!strings.Contains(err.Error(),
				"connection refused\nwhen the server is back, run the same command again; within 10m0s it continues from there") {
			t.Errorf("it was given up with: %v", err)
		}
		dead = false
		for _, step := range []struct {
			to   string
			same bool // as the first one
		}{{"/srv", false}, {"/tmp", true}, {"/tmp", false}} {
			if err := cp(step.to); err != nil {
				t.Error(err)
			}
			if is := tokens[len(tokens)-1] == tokens[0]; is != step.same {
				t.Errorf("copy number %d, to %s, has the first one's token: %t", len(tokens), step.to, is)
			}
		}
	})
}

// DA-09: a copy under a new name that was given up goes on to where it began, though the name is that of a folder now:
// the copy itself has made it.
func TestGivenUpUnderANewName(t *testing.T) {
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "file"), make([]byte, 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{copyfiles.IntoName, copyfiles.IntoFolder} {
		synctest.Test(t, func(t *testing.T) {
			var paths []string
			var came bytes.Buffer
			dead := true
			o := other{id: "uid", container: "main", words: "container main",
				run: func(_ context.Context, to cmdline.Terminal, a ask.Archive) (int, error) {
					if dead && len(paths) > 0 {
						return 125, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
					}
					paths = append(paths, a.Path)
					into := copyfiles.IntoFolder
					if dead {
						into = before
					}
					if _, err := io.WriteString(to.Out, "wherry-copy 1 "+into+"\n"); err != nil {
						return 0, err
					}
					if dead {
						_, _ = io.ReadFull(to.In, make([]byte, 100))
						return 125, errLine
					}
					_, err := came.ReadFrom(to.In)
					return 0, err
				}}
			cp := func() error {
				return (&cpFlags{quiet: true, givenUp: givenUp(dir)}).between(t.Context(),
					cmdline.Terminal{Out: io.Discard, Err: io.Discard}, o, place{path: data},
					place{pod: "web", path: "/srv/new"})
			}
			if err := cp(); err == nil || !strings.Contains(err.Error(), "continues from there") {
				t.Errorf("it was given up with: %v", err)
			}
			dead = false
			if err := cp(); err != nil {
				t.Error(err)
			}
			name, path := "new", "/srv/"
			if before == copyfiles.IntoFolder {
				name, path = "data", "/srv/new/"
			}
			frame := []byte(name + "/file\x00")
			if paths[1] != path || !bytes.Contains(came.Bytes(), frame) {
				t.Errorf("begun into a %s, it goes on in %s, and the name is not %s", before, paths[1], name)
			}
		})
	}
}

// What is kept of copies is kept for a while, and then taken away by the next one.
func TestKept(t *testing.T) {
	dir := givenUp(t.TempDir())
	now := time.Now()
	old, given := dir.of("uid", "old"), dir.of("uid", "x")
	begun := begunCopy{token: strings.Repeat("A", 26), folder: "/srv", name: "new"}
	for _, each := range []tokenFile{old, given} {
		if err := each.keep(begun, now); err != nil || each.recall(now) != begun {
			t.Errorf("it is not kept: %v", err)
		}
	}
	much := now.Add(keptFor + time.Minute)
	if got := given.recall(much); got != (begunCopy{}) {
		t.Errorf("it is kept for ever: %+v", got)
	}
	if err := os.Chtimes(string(old), now, now.Add(-keptFor-time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := dir.of("uid", "y").keep(begun, now); err != nil {
		t.Fatal(err)
	}
	for file, there := range map[tokenFile]bool{old: false, given: true} {
		if _, err := os.Lstat(string(file)); (err == nil) != there {
			t.Errorf("%s: %v, there: %t", file, err, there)
		}
	}
}

// What is no token is none, and where there is no place for one a copy is made all the same.
func TestGivenUpOtherwise(t *testing.T) {
	given := givenUp(t.TempDir()).of("uid")
	token := strings.Repeat("A", 26)
	for _, text := range []string{"", "short", strings.Repeat("a", 26), token + "A", "\x00/srv\x00new",
		token + "\x00/srv", token + "\x00/srv\x00", token + "\x00\x00new", token + "\x00/srv\x00new\x00"} {
		if err := os.WriteFile(string(given), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := given.recall(time.Now()); got != (begunCopy{}) {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
	if given.forget(); given.recall(time.Now()) != (begunCopy{}) {
		t.Error("it is not forgotten")
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []givenUp{"", givenUp(blocked)} {
		o := other{id: "uid", run: func(_ context.Context, to cmdline.Terminal, _ ask.Archive) (int, error) {
			_, err := io.WriteString(to.Out, "wherry-copy 1 folder\n")
			_, _ = io.Copy(io.Discard, to.In)
			return 0, err
		}}
		var errs bytes.Buffer
		f := &cpFlags{quiet: true, givenUp: at}
		if err := f.between(t.Context(), cmdline.Terminal{Out: io.Discard, Err: &errs}, o, place{path: file(t)},
			place{pod: "web", path: "/tmp"}); err != nil || errs.Len() > 0 {
			t.Errorf("%q: %v, %q", at, err, &errs)
		}
	}
}

// What is said of a copy's end is all of it found by who words errors, and so is its exit code.
func TestWorded(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		below error
		code  int
		says  string
	}{
		{refused, 1, "cut: dial: connection refused\nagain"},
		{&cmdline.Exit{Code: 125, Err: errLine}, 125, "cut: the connection was lost\nagain"},
		{&cmdline.Exit{Code: 1}, 1, "cut\nagain"},
	} {
		err := worded(c.below, "cut", "again")
		exit, is := errors.AsType[*cmdline.Exit](err)
		if !is || exit.Code != c.code || exit.Err.Error() != c.says || errors.Is(err, c.below) {
			t.Errorf("of %v: %#v", c.below, err)
		}
	}
}
