// SPDX-License-Identifier: Apache-2.0

package short

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/session"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// handedOver is the variable of the environment that makes the file begin with the main program
// (cmd/wherry-short/entry). Its value is a handover in JSON.
const handedOver = "WHERRY_HANDED_OVER"

// exitDefect is that of a program that cannot go on.
const exitDefect = 1

// Main is the short program, for the arguments and streams of its process. It returns an exit code, or not at all: the
// main program goes on.
func Main(args []string, in io.Reader, out, err io.Writer) int {
	w := world{args: args, getenv: os.Getenv, in: in, out: out, err: plain.New(err)}
	var had *Outcome
	if p, ok := w.plan(); ok {
		had = w.carry(context.Background(), p)
		if p.whole && had != nil && had.err == nil {
			return had.code
		}
	}
	fmt.Fprintln(w.err, "error: wherry could not go on:", w.handOver(had))
	if had != nil && had.err != nil {
		fmt.Fprintln(w.err, "error:", had.err)
	}
	return exitDefect
}

// handOver makes this process the main program. It returns only if that fails.
func (w world) handOver(o *Outcome) error {
	if w.getenv(handedOver) != "" {
		return errors.New("this is the short program alone: run bin/wherry, as make build makes it")
	}
	text, err := o.encode()
	if err != nil {
		return err
	}
	path := self()
	return fmt.Errorf("start %s again: %w (is /proc mounted?)", path,
		unix.Exec(path, w.args, append(os.Environ(), handedOver+"="+text)))
}

// self is the path of this program's file: the one that it was started by, so that its name stays, unless there is
// another one now.
func self() string {
	const magic = "/proc/self/exe"
	path, err := os.Readlink(magic)
	if err != nil {
		return magic
	}
	now, err := os.Stat(path)
	if err != nil {
		return magic
	}
	if own, err := os.Stat(magic); err != nil || !os.SameFile(own, now) {
		return magic
	}
	return path
}

// Outcome is what came of a session that the short program has carried.
type Outcome struct {
	url   string
	code  int
	err   error
	taken bool
}

// Take returns what Run of the session returned, if there was one. It is given once, and to who asks by the same u. A
// nil Outcome has nothing to give.
func (o *Outcome) Take(u *url.URL) (code int, err error, had bool) {
	if o == nil || o.taken {
		return 0, nil, false
	}
	o.taken = true
	if o.url != u.String() {
		// The two ways to a request differ: a defect. To ask again could run a command twice.
		return session.ExitFailed,
			errors.New("the session was asked for in two ways: report this as a defect of wherry, with the command"),
			true
	}
	return o.code, o.err, true
}

// Beside reports whether the session was one of debug.wherry.dev, in place of the one that Wherry's server alone
// understands.
func (o *Outcome) Beside() bool {
	if o == nil {
		return false
	}
	u, err := url.Parse(o.url)
	return err == nil && strings.Contains(u.Path, wire.Base+"/")
}

// Param is a parameter of the request that the session was; empty without one. The main program asks for the same.
func (o *Outcome) Param(name string) string {
	if o == nil {
		return ""
	}
	u, err := url.Parse(o.url)
	if err != nil {
		return ""
	}
	return u.Query().Get(name)
}

// Received is what the short program has handed over to this process; nil if it has not, or had carried no session.
func Received() (*Outcome, error) {
	text, ok := os.LookupEnv(handedOver)
	if !ok {
		return nil, nil
	}
	// It is for this process, not for those that it starts.
	if err := os.Unsetenv(handedOver); err != nil {
		return nil, err
	}
	o, err := decode(text)
	if err != nil {
		return nil,
			fmt.Errorf("the environment has %s, which is for wherry's own use, with a value that is not of wherry: %w; unset it", handedOver, err)
	}
	return o, nil
}

// handover is an Outcome in words.
type handover struct {
	URL      string          `json:"url,omitempty"` // empty: there was no session
	Code     int             `json:"code,omitempty"`
	Detached bool            `json:"detached,omitempty"`
	Refused  *session.Status `json:"refused,omitempty"`
	Raw      []byte          `json:"raw,omitempty"`
	Error    string          `json:"error,omitempty"`
}

// maxHandover keeps below what Linux takes in one variable of the environment (MAX_ARG_STRLEN, 128 KiB).
const (
	maxHandover = 120 << 10
	maxError    = 16 << 10
)

func (o *Outcome) encode() (string, error) {
	var h handover
	if o != nil {
		h.URL, h.Code = o.url, o.code
		refusal, refused := errors.AsType[*session.Refusal](o.err)
		switch {
		case refused:
			h.Refused, h.Raw = &refusal.Status, refusal.Raw
		case errors.Is(o.err, session.ErrDetached):
			h.Detached = true
		case o.err != nil:
			h.Error = o.err.Error()
		}
	}
	text, err := json.Marshal(h)
	if err != nil || len(text) <= maxHandover {
		return string(text), err
	}
	// A server's long message is shown in its words, cut, and without what is for programs.
	if o.err != nil {
		h.Error = strings.ToValidUTF8(o.err.Error()[:min(len(o.err.Error()), maxError)], "") + " …"
	}
	h.Refused, h.Raw = nil, nil
	text, err = json.Marshal(h)
	return string(text), err
}

func decode(text string) (*Outcome, error) {
	var h handover
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return nil, err
	}
	if h.URL == "" {
		return nil, nil
	}
	o := &Outcome{url: h.URL, code: h.Code}
	switch {
	case h.Refused != nil:
		o.err = &session.Refusal{Status: *h.Refused, Raw: h.Raw}
	case h.Detached:
		o.err = session.ErrDetached
	case h.Error != "":
		o.err = errors.New(h.Error)
	}
	return o, nil
}
