// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/wherryproject/wherry/internal/api/debugrun"
)

// Ctrl-P Ctrl-Q leaves; every other use of the two keys reaches the program, also when they come in reads of their own.
func TestDetacher(t *testing.T) {
	for in, want := range map[string]struct {
		out  string
		left bool
	}{
		"ls\r":                     {"ls\r", false},
		"ls\x10\x11never":          {"ls", true},
		"\x10\x11":                 {"", true},
		"a\x10b":                   {"a\x10b", false},
		"\x10\x10\x11":             {"\x10", true},
		"\x10\x10x":                {"\x10\x10x", false},
		"\x11\x10":                 {"\x11", false}, // the Ctrl-P waits for what comes next; then the input ended
		strings.Repeat("0123", 40): {strings.Repeat("0123", 40), false},
	} {
		for name, reader := range map[string]io.Reader{"at once": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in))} {
			left := 0
			d := &detacher{in: reader, leave: func() { left++ }}
			var out strings.Builder
			buf := make([]byte, 16)
			for {
				n, err := d.Read(buf)
				out.Write(buf[:n])
				if err != nil {
					break
				}
			}
			if out.String() != want.out || left > 1 || (left == 1) != want.left {
				t.Errorf("%q %s: handed on %q, left %d times", in, name, out.String(), left)
			}
		}
	}
}

// The exit code is the command's; 125 to 127 where it could not be run, as docker run has them; 1 for other refusals.
func TestCodeOf(t *testing.T) {
	refusal := func(causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusConflict, Message: "no", Details: &metav1.StatusDetails{Causes: causes}}}
	}
	exit := func(text string) metav1.StatusCause {
		return metav1.StatusCause{Type: debugrun.CauseExitCode, Message: text}
	}
	for name, c := range map[string]struct {
		err  error
		code int
		says bool
	}{
		"well":             {nil, 0, false},
		"exit code":        {fmt.Errorf("stream: %w", exec.CodeExitError{Err: errors.New("x"), Code: 42}), 42, false},
		"refused":          {refusal(), 1, true},
		"not found":        {refusal(exit("127")), 127, true},
		"upgrade":          {&httpstream.UpgradeFailureError{Cause: refusal(exit("126"))}, 126, true},
		"odd cause":        {refusal(exit("x"), exit("0"), exit("300")), 1, true},
		"exec, no command": {errors.New(`Internal error occurred: unable to start container process: exec: "x": executable file not found in $PATH`), 127, true},
		"exec, no file":    {errors.New(`unable to start container process: exec: "/x": stat /x: no such file or directory`), 127, true},
		"exec, no right":   {errors.New(`unable to start container process: exec: "/etc": permission denied`), 126, true},
		"refused by node":  {errors.New("Internal error occurred: unable to upgrade connection: image exec: no such image"), 1, true},
		"broken line":      {io.ErrUnexpectedEOF, 125, true},
		"other causes":     {refusal(metav1.StatusCause{Type: "Other", Message: "9"}), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			code, err := codeOf(c.err)
			if code != c.code || (err != nil) != c.says {
				t.Errorf("code %d, error %v; want %d, and an error: %v", code, err, c.code, c.says)
			}
		})
	}
}
