// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/short"
	"github.com/wherryproject/wherry/internal/server"
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
	exitFailure = 1
	exitUsage   = 2
)

// Main runs the program that args[0] names with the rest of args, and returns its exit code.
func Main(args []string) int {
	had, err := short.Received()
	t := Terminal{os.Stdin, os.Stdout, os.Stderr, had}.plain()
	if err != nil {
		return codeOf(t.Err, err)
	}
	switch filepath.Base(args[0]) {
	case "kubectl", "wherry-kubectl":
		return kubectl(t, args[1:])
	}
	return run(t, args[1:])
}

// plain makes messages harmless wherever they go, and results where a person reads them: a program gets these byte for
// byte.
func (t Terminal) plain() Terminal {
	t.Err = plain.New(t.Err)
	if plain.IsTerminal(t.Out) {
		t.Out = plain.New(t.Out)
	}
	return t
}

func run(t Terminal, args []string) int {
	t = t.plain()
	defer plain.Flush(t.Err)
	defer plain.Flush(t.Out)
	var out *plain.Watched
	if t.Out != nil && !plain.IsTerminal(t.Out) {
		out = plain.Watch(t.Out)
		t.Out = out
	}
	root := New(t)
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown := unknownFirst(root, args); unknown != nil {
			return unknown
		}
		return wrongFlag(cmd, err)
	})
	err := root.ExecuteContext(context.Background())
	if err == nil && out != nil {
		err = unwritten(out.Err())
	}
	return codeOf(t.Err, err)
}

// unwritten is the error of a command that has done its work, and whose results could not be written. That nobody reads
// on is none: it is how head ends.
func unwritten(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("the output is not complete: %w", err)
}

// codeOf prints an error once and returns the exit code that stands for it.
func codeOf(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	var exit *Exit
	if errors.As(err, &exit) {
		if exit.Err != nil {
			fmt.Fprintln(w, "error:", indent(wordsOf(exit.Err)))
		}
		return exit.Code
	}
	fmt.Fprintln(w, "error:", indent(wordsOf(err)))
	var refusal *server.Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return exitFailure
}

// wordsOf is an error for the user. That a server does not answer says all; which request it was says nothing more.
func wordsOf(err error) string {
	if a, ok := errors.AsType[*away](err); ok {
		return a.Error()
	}
	return err.Error()
}

// indent keeps several lines of one message together.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n       ") }

// New returns the command tree.
func New(t Terminal) *cobra.Command {
	t = t.plain()
	root := &cobra.Command{
		Use:   "wherry",
		Short: "Kubernetes pods on one Linux machine",
		Long: `Wherry runs Kubernetes pods on one Linux machine: API server, node agent and container runtime in one program.

Start a server and use it with kubectl:

  sudo wherry server
  sudo wherry kubectl get nodes

Or run a pod in the foreground, without a server of its own:

  sudo wherry run -f pod.yaml`,
		SilenceErrors: true,
		SilenceUsage:  true,

		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(t.In)
	root.SetOut(t.Out)
	root.SetErr(t.Err)
	root.Version = versionsNow().Wherry
	root.SetVersionTemplate("wherry {{.Version}}\n")
	root.AddGroup(&cobra.Group{ID: "use", Title: "Pods:"}, &cobra.Group{ID: "run", Title: "Server:"},
		&cobra.Group{ID: "other", Title: "Other:"})
	for _, c := range []*cobra.Command{newRun(t), newDebug(t), newExec(t), newCp(t), newTimeline(t), newAudit(t),
		newKubectl(t), newImage(t), newImages(t)} {
		c.GroupID = "use"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{newServer(t), newService(t), newAgent(t), newToken(t), newKubeconfig(t),
		newCerts(t), newBackup(t), newRestore(t), newCheck(t), newPurge(t)} {
		c.GroupID = "run"
		root.AddCommand(c)
	}
	root.AddCommand(newInspect(t))
	version := newVersion(t)
	version.GroupID = "other"
	root.AddCommand(version)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	usageErrors(root)
	return root
}

// usageErrors makes wrong arguments of every command below exit with the code for that.
func usageErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return wrongArguments(c, args, err)
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		usageErrors(c)
	}
}

func dataDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "data-dir", ask.DataDir(), "data folder of the server (also $WHERRY_DATA_DIR)")
	_ = cmd.MarkFlagDirname("data-dir") // fails only for a flag that is not there
}

// isTerminal reports whether w is a terminal that wants colour.
func isTerminal(w io.Writer) bool { return ask.Colours(w) }
