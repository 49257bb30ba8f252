// SPDX-License-Identifier: Apache-2.0

package onhost

import (
	"context"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	clisession "github.com/wherryproject/wherry/internal/cli/session"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/kit"
	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
	"github.com/wherryproject/wherry/internal/hostdebug/session"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// Copier runs the toolbox's commands, as those of a copy, beside a target of this machine.
type Copier struct {
	Name      string // the target's files are at /c/<Name>
	Container *engines.Container

	user *debugask.User
}

// Copier finds the target.
func (f *Flags) Copier(ctx context.Context, to target.Target, user string) (*Copier, error) {
	u, err := debugask.ParseUser(user)
	if err != nil {
		return nil, cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	c, err := f.find(ctx, to)
	if err != nil {
		return nil, err
	}
	return &Copier{Name: c.FolderName(), Container: c, user: u}, nil
}

// Run runs a command of the toolbox, without a terminal.
func (c *Copier) Run(ctx context.Context, t cmdline.Terminal, writable bool, command ...string) (int, error) {
	code, err := session.Run(ctx, session.Request{Target: c.Container, Self: self(), Tools: kit.Packed{},
		Errors: fileOf(t.Err), Writable: writable, Options: ocispec.Options{Command: command, User: c.user}},
		session.Streams{In: t.In, Out: t.Out, Err: t.Err})
	if err != nil { // also a session that was ended before the copy was whole
		return clisession.ExitFailed, err
	}
	return code, nil
}
