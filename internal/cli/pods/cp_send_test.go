// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/copyfiles"
)

// file is one to copy.
func file(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, bytes.Repeat([]byte("text"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// An older server, of whose toolbox or API a copy that goes on is not known, is copied to as before, and nobody is
// told.
func TestSendToAnOlderServer(t *testing.T) {
	for what, refuse := range map[string]func(errs io.Writer) (int, error){
		"its toolbox": func(errs io.Writer) (int, error) {
			_, err := io.WriteString(errs, "cp-unpack: unknown flag --keep (see --help)\n")
			return 2, err
		},
		"its API": func(io.Writer) (int, error) { return 1, apierrors.NewBadRequest(`"keep" is unknown`) },
	} {
		var came bytes.Buffer
		o := other{container: "main", words: "container main",
			run: func(_ context.Context, to cmdline.Terminal, a ask.Archive) (int, error) {
				if a.Keep != "" {
					return refuse(to.Err)
				}
				came.Reset()
				_, err := came.ReadFrom(to.In)
				return 0, err
			}}
		var errs bytes.Buffer
		err := (&cpFlags{quiet: true}).between(t.Context(), cmdline.Terminal{Out: io.Discard, Err: &errs}, o,
			place{path: file(t)}, place{pod: "web", path: "/tmp"})
		if err != nil || errs.Len() > 0 || !strings.Contains(came.String(), "texttext") {
			t.Errorf("%s: %v, %q; %d bytes came", what, err, &errs, came.Len())
		}
	}
}

// DA-09: a copy into a pod goes on after a cut, to the same place, though what was a name may be a folder by now; a
// container that was started anew is known.
func TestSendAfterACut(t *testing.T) {
	for _, into := range []string{copyfiles.IntoFolder, copyfiles.IntoName} {
		synctest.Test(t, func(t *testing.T) {
			var paths []string
			var tokens = map[string]bool{}
			lives := 0
			o := other{container: "main", words: "container main",
				life: func(context.Context) (string, error) { lives++; return "one", nil },
				run: func(_ context.Context, to cmdline.Terminal, a ask.Archive) (int, error) {
					paths, tokens[a.Keep] = append(paths, a.Path), true
					if _, err := io.WriteString(to.Out, "wherry-copy 1 "+into+"\n"); err != nil {
						return 0, err
					}
					if len(paths) < 3 {
						_, err := io.ReadFull(to.In, make([]byte, 100))
						return 125, errors.Join(errLine, err)
					}
					_, err := io.Copy(io.Discard, to.In)
					return 0, err
				}}
			var errs bytes.Buffer
			err := (&cpFlags{quiet: true}).between(t.Context(), cmdline.Terminal{Out: io.Discard, Err: &errs}, o,
				place{path: file(t)}, place{pod: "web", path: "/tmp/x"})
			want := map[string]string{copyfiles.IntoFolder: "/tmp/x /tmp/x/ /tmp/x/",
				copyfiles.IntoName: "/tmp/x /tmp/ /tmp/"}[into]
			if got := strings.Join(paths, " "); err != nil || got != want || len(tokens) != 1 || lives != 3 {
				t.Errorf("%v: by %s, want %s; %d tokens, asked %d times", err, got, want, len(tokens), lives)
			}
			if n := strings.Count(errs.String(), "the copy continues from where it was"); n != 1 {
				t.Errorf("told %d times: %q", n, &errs)
			}
		})
	}
}

// What ends a copy on one side is told rather than what follows from it on the other.
func TestEnded(t *testing.T) {
	full := &cmdline.Exit{Code: 1}
	for what, c := range map[string]struct {
		there, here error
		want        string
		final       bool
	}{
		"well":                     {nil, nil, "", false},
		"the disk there is full":   {full, io.ErrClosedPipe, "exit code 1", false},
		"cut":                      {errLine, copyfiles.ErrLegOver, "connection was lost", false},
		"a file is not readable":   {full, os.ErrPermission, "permission denied", true},
		"not taken, and not told":  {nil, copyfiles.ErrLegOver, "was not taken whole", true},
		"its end was not heard of": {errLine, nil, "connection was lost", false},
	} {
		err := ended(c.there, c.here)
		_, is := errors.AsType[final](err)
		if is != c.final || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, final %t", what, err, is)
		}
	}
}

// A folder that is named as one must be there.
func TestSendToNoFolder(t *testing.T) {
	o := other{container: "main", words: "container main", run: func(context.Context, cmdline.Terminal,
		ask.Archive) (int, error) {
		return notThere, nil
	}}
	err := (&cpFlags{quiet: true}).between(t.Context(), cmdline.Terminal{Out: io.Discard, Err: io.Discard}, o,
		place{path: file(t)}, place{pod: "web", path: "/no/"})
	if err == nil || !strings.Contains(err.Error(), "container main has no folder /no/") {
		t.Errorf("%v", err)
	}
}
