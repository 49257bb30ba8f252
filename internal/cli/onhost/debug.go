// SPDX-License-Identifier: Apache-2.0

package onhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
	clisession "github.com/wherryproject/wherry/internal/cli/session"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/kit"
	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
	"github.com/wherryproject/wherry/internal/hostdebug/session"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Debug opens a shell, or runs a command, with a target of this machine.
func (f *Flags) Debug(ctx context.Context, t cmdline.Terminal, to target.Target, d *ask.Debug, writable bool,
	command []string) error {
	switch {
	case d.Container != "":
		return usage("-c names a debug container of a pod; %s gets none: leave it out", to)
	case d.Target != "":
		return usage("--target is for pods: %s is the target already; leave it out", to)
	}
	user, err := debugask.ParseUser(d.User)
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	w := ocispec.Options{Command: command, TTY: d.TTY, User: user, Profile: d.Profile}
	return f.run(ctx, t, to, debugger{options: w, image: d.Image, writable: writable, ttl: d.TTL, quiet: d.Quiet,
		talks: d.Talks(t.Err)})
}

// Exec runs a command from an image with the files of a target of this machine.
func (f *Flags) Exec(ctx context.Context, t cmdline.Terminal, to target.Target, e *ask.Exec, command []string) error {
	switch {
	case e.Image == "" && (to.Engine == target.Docker || to.Engine == target.Podman):
		return usage("wherry exec with %s runs a command from an image beside it: name one with -m (%s is built in); to run a command of its own: %s exec %s",
			to, debugask.ToolboxImage, to.Engine, to.Name)
	case e.Image == "":
		return usage("wherry exec with %s runs a command from an image beside it: name one with -m (%s is built in)",
			to, debugask.ToolboxImage)
	case e.Container != "":
		return usage("-c names a container of a pod; %s is one already: leave it out", to)
	case e.TTY && !e.Stdin:
		return usage("-t needs -i: a terminal without input is of no use")
	}
	user, err := debugask.ParseUser(e.User)
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, fmt.Errorf("--user: %w", err))
	}
	w := ocispec.Options{Command: command, TTY: e.TTY && ask.IsTerminal(t.In), User: user}
	if !e.Stdin {
		t.In = nil
	}
	return f.run(ctx, t, to, debugger{options: w, image: e.Image, writable: e.Writable, quiet: e.Quiet})
}

func usage(format string, args ...any) error {
	return cmdline.ExitWith(cmdline.ExitUsage, fmt.Errorf(format, args...))
}

// debugger is what is to be run.
type debugger struct {
	options      ocispec.Options
	image        string // empty, or the toolbox's name: the toolbox
	writable     bool
	ttl          time.Duration
	quiet, talks bool
}

func (f *Flags) run(ctx context.Context, t cmdline.Terminal, to target.Target, d debugger) error {
	if err := f.limits(&d.options); err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	if err := checkProfile(d.options.Profile); err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	c, err := f.find(ctx, to)
	if err != nil {
		return err
	}
	req := session.Request{Target: c, Options: d.options, Writable: d.writable, TTL: d.ttl, Self: self(),
		Tools:  kit.Packed{},
		Errors: fileOf(t.Err), Note: func(text string) {
			if !d.quiet {
				fmt.Fprint(t.Err, plain.Text("wherry: "+text)+"\n")
			}
		}}
	if d.image != "" && !podspec.IsToolbox(d.image) {
		req.Image = f.image(t, c, d.image, d.quiet)
	}
	req.Options.Term = os.Getenv("TERM")
	if d.talks {
		announce(t, c)
	}
	code, err := session.Run(ctx, req, streams(t, d.options.TTY))
	var ended *session.Ended
	switch {
	case errors.As(err, &ended):
		if !d.quiet {
			fmt.Fprintln(t.Err, ended)
		}
		return cmdline.ExitWith(code, nil)
	case err != nil && code == 0:
		code = clisession.ExitFailed
	}
	return cmdline.ExitWith(code, err)
}

// announce says what the user is about to look at.
func announce(t cmdline.Terminal, c *engines.Container) {
	name := c.FolderName()
	if c.Alive() {
		fmt.Fprintf(t.Err, "%s (%s, process %d): its files are under /c/%s; it is not changed\n", c.Target,
			plain.Text(c.Name), c.PID, name)
		return
	}
	how := fmt.Sprintf("exit code %d", c.ExitCode)
	if c.OOMKilled {
		how += ", out of memory"
	}
	if c.State == engines.Created {
		how = "never started"
	}
	fmt.Fprintf(t.Err,
		"%s is not running (%s): its last files are under /c/%s, its log and state under /c/.wherry/%s\n", c.Target,
		how, name, name)
}

// streams are those of the command.
func streams(t cmdline.Terminal, tty bool) session.Streams {
	s := session.Streams{In: t.In, Out: plain.Output(t.Out), Err: plain.Output(t.Err)}
	if tty {
		s.Out, s.Err = plain.Own(t.Out), plain.Own(t.Err)
	}
	// A file is the command's own: nothing is copied through this process.
	if out, ok := plain.File(s.Out); ok && (tty || !plain.IsTerminal(out)) {
		s.Out = out
	}
	if errs, ok := plain.File(s.Err); ok && (tty || !plain.IsTerminal(errs)) {
		s.Err = errs
	}
	return s
}

// fileOf is the file that a stream is; nil if it is none.
func fileOf(w io.Writer) *os.File {
	f, _ := plain.File(w)
	return f
}

// checkProfile refuses a profile that there is none of.
func checkProfile(name string) error {
	_, err := ocispec.New(ocispec.Options{Profile: name}, ocispec.Image{}, ocispec.Placement{})
	return err
}

// self is the program that guards a session: this one.
func self() string {
	if path, err := os.Executable(); err == nil {
		if _, err := os.Stat(path); err == nil {
			return filepath.Clean(path)
		}
	}
	return "/proc/self/exe"
}
