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
)

// DA-09: a copy into a pod whose server dies and stays away is given up with words that say how far it was, and the same
// command goes on with it: by the same token, to which the parts in the pod belong. Another command does not, nor does
// the same one much later, or once more after it has succeeded.
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
			!strings.Contains(err.Error(), "connection refused\nwhen the server is back the same command goes on from there, within 10m0s") {
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
		given := givenUp(dir).of("uid", "x")
		token := strings.Repeat("A", 26)
		if err := given.keep(token); err != nil || given.recall(time.Time{}) != token {
			t.Errorf("a token is not kept: %v", err)
		}
		if given.recall(time.Now().Add(100*365*24*time.Hour)) != "" {
			t.Error("a token is kept for ever")
		}
	})
}

// What is no token is none, and where there is no place for one a copy is made all the same.
func TestGivenUpOtherwise(t *testing.T) {
	given := givenUp(t.TempDir()).of("uid")
	for _, text := range []string{"", "short", strings.Repeat("a", 26), strings.Repeat("A", 27)} {
		if err := os.WriteFile(string(given), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := given.recall(time.Now()); got != "" {
			t.Errorf("%q is taken for the token %q", text, got)
		}
	}
	if given.forget(); given.recall(time.Now()) != "" {
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
