// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/session"
)

// IsTerminal reports whether w is a terminal that wants colour.
func IsTerminal(w io.Writer) bool { return ask.Colours(w) }

// ReadsTerminal reports whether a person can type what in reads.
func ReadsTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Size is the terminal's width and height; a height of 0 is none: a file, a pipe.
func Size(out io.Writer) (width, height int) {
	if file, ok := plain.File(out); ok {
		if w, h, err := term.GetSize(int(file.Fd())); err == nil && w > 0 {
			return w, h
		}
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return w, 0
	}
	return 100, 0
}

// Agrees asks a question that is answered with yes or no.
func Agrees(t Terminal, question string) bool {
	fmt.Fprint(t.Err, question+" [y/N] ")
	answer, err := bufio.NewReader(t.In).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(t.Err)
	}
	answer = strings.TrimSpace(strings.ToLower(answer))
	return answer == "y" || answer == "yes"
}

// Until reads from a reader until the user calls it off.
func Until(ctx context.Context, from io.Reader) io.Reader { return &calledOff{ctx, from} }

type calledOff struct {
	ctx  context.Context
	from io.Reader
}

// Read implements io.Reader.
func (c *calledOff) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, io.ErrUnexpectedEOF
	}
	return c.from.Read(p)
}

// NothingWritten is what CalledOffBy says of what makes a file, which is therefore not there.
const NothingWritten = "nothing was written"

// CalledOffBy says that the user called off a command, if it was so, and what that has left.
func CalledOffBy(ctx context.Context, err error, left string) error {
	if ctx.Err() == nil {
		return err
	}
	return ExitWith(session.ExitInterrupted, errors.New("interrupted: "+left))
}

func DashIfNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
