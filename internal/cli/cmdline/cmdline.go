// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"fmt"
	"io"

	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/short"
)

// Terminal is where a command reads and writes. New makes it plain: what comes from others cannot act on the user's
// terminal. Whoever needs more asks package plain for it.
type Terminal struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Had is what came of a session that the short program has carried already; nil if there was none.
	Had *short.Outcome
}

// Exit is an error with an exit code. Without Err nothing is printed.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Exit) Unwrap() error { return e.Err }

const (
	ExitFailure = 1
	ExitUsage   = 2
)

// Plain makes messages harmless wherever they go, and results where a person reads them: a program gets these byte for
// byte.
func (t Terminal) Plain() Terminal {
	t.Err = plain.New(t.Err)
	if plain.IsTerminal(t.Out) {
		t.Out = plain.New(t.Out)
	}
	return t
}

// ExitWith makes a command's exit code the program's.
func ExitWith(code int, err error) error {
	if code == 0 && err == nil {
		return nil
	}
	return &Exit{code, err}
}
