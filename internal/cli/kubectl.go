// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	componentcli "k8s.io/component-base/cli"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/datadir"
)

func newKubectl(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl COMMAND",
		Short: "kubectl, connected to this machine's server",
		Long: `The complete, unmodified kubectl, with no need to install it.

Without --kubeconfig and KUBECONFIG it connects to this machine's server, with the kubeconfig in the server's data folder
(/var/lib/wherry, or $WHERRY_DATA_DIR). --data-dir, the only flag that is not kubectl's own, names another data folder, and takes
precedence over KUBECONFIG.`,
		Example: `  wherry kubectl get pods -o wide
  wherry kubectl exec -it web -- sh
  wherry kubectl apply -f pod.yaml`,
		DisableFlagParsing: true, // all flags are kubectl's
		ValidArgsFunction:  completeKubectl,
		RunE: func(_ *cobra.Command, args []string) error {
			return silent(kubectl(t, args))
		},
	}
}

func silent(code int) error {
	if code == 0 {
		return nil
	}
	return &Exit{Code: code}
}

// kubectl runs kubectl with its arguments. What kubectl prints by itself is its own affair. It ends the process by
// itself on most errors, as kubectl does.
func kubectl(t Terminal, args []string) int {
	dataDir, given, args := cutDataDir(args)
	from, err := chooseKubeconfig(dataDir, given, args)
	if err != nil {
		fmt.Fprintln(t.Err, "error:", err)
		return exitFailure
	}
	quietKubectl(from, t.Err)
	os.Args = append([]string{"kubectl"}, args...) // kubectl and its completion look there
	if err := componentcli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		cmdutil.CheckErr(err)
	}
	return 0
}

// kubectlOn is kubectl for a command that leaves its work to it.
func kubectlOn(t Terminal) func(args ...string) int {
	return func(args ...string) int { return kubectl(t, args) }
}

// quietKubectl has kubectl say in one sentence that a server does not answer. Its libraries would log each try of
// discovery before.
func quietKubectl(from reach.Source, errs io.Writer) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(ctx context.Context, err error, msg string,
		keysAndValues ...any) {
		if err != nil && reach.IsAway(err) {
			return // the command fails with it in a moment, and says so
		}
		for _, handle := range handlers {
			handle(ctx, err, msg, keysAndValues...)
		}
	}}
	cmdutil.BehaviorOnFatal(func(text string, code int) {
		if text = from.KubectlWords(text); text != "" {
			fmt.Fprintln(errs, strings.TrimSuffix(text, "\n"))
		}
		os.Exit(code)
	})
}

// cutDataDir takes wherry's own flag --data-dir out of kubectl's arguments, and reports whether it was given. What
// comes after -- is for others.
func cutDataDir(args []string) (dir string, given bool, rest []string) {
	dir = ask.DataDir()
	for i := 0; i < len(args); i++ {
		value, here := strings.CutPrefix(args[i], "--data-dir=")
		switch {
		case args[i] == "--":
			return dir, given, append(rest, args[i:]...)
		case here:
			dir, given = value, true
		case args[i] == "--data-dir" && i+1 < len(args):
			i++
			dir, given = args[i], true
		default:
			rest = append(rest, args[i])
		}
	}
	return dir, given, rest
}

// chooseKubeconfig points kubectl at this machine's server when the user points nowhere, or names its data folder: a
// flag counts for more than a variable.
func chooseKubeconfig(dataDir string, given bool, args []string) (reach.Source, error) {
	if slices.ContainsFunc(args, func(a string) bool {
		return a == "--kubeconfig" || strings.HasPrefix(a, "--kubeconfig=") || a == "--server" ||
			strings.HasPrefix(a, "--server=") || a == "-s"
	}) {
		return reach.Source{}, nil
	}
	if variable := os.Getenv("KUBECONFIG"); variable != "" && !given {
		if !needsServer(args) {
			return reach.Source{}, nil // kubectl config makes the file
		}
		return reach.Source{}, reach.CheckKubeconfig("", variable)
	}
	path := datadir.Kubeconfig(dataDir)
	f, err := os.Open(path)
	switch {
	case err == nil:
		f.Close()
		return reach.Source{DataDir: dataDir}, os.Setenv("KUBECONFIG", path)
	case errors.Is(err, os.ErrPermission) && needsServer(args):
		return reach.Source{}, reach.OnlyRoot(path)
	}
	if home, err := os.UserHomeDir(); err == nil && !given {
		if _, err := os.Stat(filepath.Join(home, ".kube", "config")); err == nil {
			return reach.Source{}, nil
		}
	}
	if !needsServer(args) {
		return reach.Source{}, nil
	}
	return reach.Source{}, reach.NeverStarted(dataDir)
}

// completeKubectl asks kubectl itself what may come next.
func completeKubectl(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	dataDir, given, args := cutDataDir(args)
	if _, err := chooseKubeconfig(dataDir, given, args); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	os.Args = []string{"kubectl"} // it looks there for plug-ins
	var out bytes.Buffer
	cmd := kubectlcmd.NewDefaultKubectlCommand()
	cmd.SetArgs(append(append([]string{cobra.ShellCompRequestCmd}, args...), prefix))
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	if err := cmd.Execute(); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := words[len(words)-1] // how the shell is to go on, after a colon
	directive, err := strconv.Atoi(strings.TrimPrefix(last, ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return words[:len(words)-1], cobra.ShellCompDirective(directive)
}

// needsServer is false for what kubectl does without a server.
func needsServer(args []string) bool {
	for _, a := range args {
		switch a {
		case "help", "--help", "-h", "completion", "config", "options", "plugin", "kustomize", "__complete",
			"__completeNoDesc", "--client", "--client=true":
			return false
		}
	}
	return len(args) > 0
}
