// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/capturing"
	"github.com/wherryproject/wherry/internal/cli/clustering"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/images"
	"github.com/wherryproject/wherry/internal/cli/networks"
	"github.com/wherryproject/wherry/internal/cli/onhost"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/pods"
	"github.com/wherryproject/wherry/internal/cli/podwhy"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cli/short"
	"github.com/wherryproject/wherry/internal/cli/volumes"
	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/sessionchild"
	"github.com/wherryproject/wherry/internal/hostdebug/kit"
	"github.com/wherryproject/wherry/internal/server"
)

// What every command has, by its short names.
type (
	Terminal = cmdline.Terminal
	Exit     = cmdline.Exit
)

const (
	exitFailure = cmdline.ExitFailure
	exitUsage   = cmdline.ExitUsage
)

// Main runs the program that args[0] names with the rest of args, and returns its exit code.
func Main(args []string) int {
	if len(args) > 1 && args[1] == talk.Word {
		return sessionchild.Main(os.Stdin, os.Stdout, os.Stderr, kit.Packed{})
	}
	if len(args) == 3 && args[1] == talk.KitWord {
		return kit.Main(args[2], os.Stderr)
	}
	had, err := short.Received()
	t := Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Had: had}.Plain()
	if err != nil {
		return codeOf(t.Err, err)
	}
	switch filepath.Base(args[0]) {
	case "kubectl", "wherry-kubectl":
		return kubectl(t, args[1:])
	case pluginFile:
		return runAs(pluginName, t, args[1:])
	case pluginCompletion:
		return runAs(pluginName, t, append([]string{cobra.ShellCompRequestCmd}, args[1:]...))
	}
	return run(t, args[1:])
}

// As a plug-in of kubectl the program is called by the first name, and kubectl has it complete words by the
// second. A person knows it by the third, which messages say.
const (
	pluginFile       = "kubectl-wherry"
	pluginCompletion = "kubectl_complete-wherry"
	pluginName       = "kubectl wherry"
)

func run(t Terminal, args []string) int { return runAs("wherry", t, args) }

// runAs runs the program under the name by which the user knows it.
func runAs(name string, t Terminal, args []string) int {
	t = t.Plain()
	defer plain.Flush(t.Err)
	defer plain.Flush(t.Out)
	var out *plain.Watched
	if t.Out != nil && !plain.IsTerminal(t.Out) {
		out = plain.Watch(t.Out)
		t.Out = out
	}
	root := New(t)
	if name != root.Name() {
		rename(root, name)
	}
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown := cmdline.UnknownFirst(root, args); unknown != nil {
			return unknown
		}
		return cmdline.WrongFlag(cmd, err)
	})
	err := root.ExecuteContext(context.Background())
	if err == nil && out != nil {
		err = unwritten(out.Err())
	}
	return codeOf(t.Err, err)
}

// rename has help say another name of the program, also in examples.
func rename(root *cobra.Command, name string) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	word := regexp.MustCompile(`(^|\s)` + root.Name() + ` `)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Example = word.ReplaceAllString(cmd.Example, "${1}"+name+" ")
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
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
	if a, ok := errors.AsType[*reach.Away](err); ok {
		return a.Error()
	}
	return err.Error()
}

// indent keeps several lines of one message together.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n       ") }

// New returns the command tree.
func New(t Terminal) *cobra.Command {
	t = t.Plain()
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

		Args: cmdline.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(t.In)
	root.SetOut(t.Out)
	root.SetErr(t.Err)
	root.Version = versionsNow().Wherry
	root.SetVersionTemplate("wherry {{.Version}}\n")
	root.AddGroup(&cobra.Group{ID: "use", Title: "Pods:"}, &cobra.Group{ID: "run", Title: "Server:"},
		&cobra.Group{ID: "other", Title: "Other:"})
	for _, c := range []*cobra.Command{newRun(t), pods.NewDebug(t, kubectlOn(t)), pods.NewExec(t), pods.NewCp(t),
		onhost.NewPs(t), podwhy.New(t), newTimeline(t), newUI(t), capturing.New(t), newAudit(t), newKubectl(t),
		images.NewImage(t), images.NewImages(t), volumes.New(t), networks.New(t), clustering.New(t)} {
		c.GroupID = "use"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{newServer(t), newService(t), newAgent(t), newToken(t), newKubeconfig(t),
		newCerts(t), newBackup(t), newRestore(t), newDrain(t), newCheck(t), newPurge(t)} {
		c.GroupID = "run"
		root.AddCommand(c)
	}
	root.AddCommand(newInspect(t), newResolver(t), newGuard(t), newClusterAgent(t))
	version := newVersion(t)
	version.GroupID = "other"
	root.AddCommand(version)
	cmdline.OwnWords(root, "other")
	cmdline.EveryDataDir(root)
	usageErrors(root)
	return root
}

// usageErrors makes wrong arguments of every command below exit with the code for that.
func usageErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return cmdline.WrongArguments(c, args, err)
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		usageErrors(c)
	}
}
