// SPDX-License-Identifier: Apache-2.0

package podwhy

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/onhost"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
	"github.com/wherryproject/wherry/internal/why"
	"github.com/wherryproject/wherry/internal/why/gather"
)

// ExitWrong is the exit code, with --exit-code, when something is wrong with the pod.
const ExitWrong = 3

// patience bounds how long facts are gathered.
const patience = 60 * time.Second

type flags struct {
	reach.Flags
	host     onhost.Flags
	output   string
	exitCode bool
	noColour bool
	utc      bool
}

// New is the command.
func New(t cmdline.Terminal) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "why POD",
		Short: "Explain what is wrong with a pod, on what evidence, and what to try",
		Long: `Say in plain words what is wrong with a pod and what to try: exit codes and signals, lack of memory, probes with their last answer,
image pulls with the registry's error, scheduling with the numbers, volumes, missing ConfigMaps, Secrets and keys, names and connections
that lead nowhere, the last lines of the relevant log, and what changed before. Each fact comes with its source.

It works with any Kubernetes cluster and changes nothing. Only Wherry's nodes know which names a pod has looked up. What you have no
permission to see is left out, and the missing permission is named.

With a container of this machine instead of a pod (docker:NAME, podman:NAME and so on, see wherry debug --help) it says what its engine knows;
that needs root, but no server.

POD is the name of a pod; pod/NAME, deployment/NAME and the like work too. With the name of a Deployment, StatefulSet, DaemonSet,
ReplicaSet or Job the answer is about whichever of its pods is worst off, or why there is none.

Exit codes: 0 answered, whatever the answer; 1 no answer; 2 incorrect usage; with --exit-code 3 if something is wrong.`,
		Example: `  wherry why web-5d8f7c9b6-x2x7k
  wherry why deployment/web -n shop
  wherry why web --context staging
  sudo wherry why docker:web
  wherry why web -o json | jq -r '.findings[].what'
  wherry why web --exit-code > /dev/null || echo broken`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), t, args[0])
		},
		ValidArgsFunction: f.host.Complete(f.CompletePods),
	}
	f.AddTo(cmd)
	f.host.AddAddress(cmd.Flags())
	cmdline.OutputFlag(cmd, &f.output)
	cmd.Flags().BoolVar(&f.exitCode, "exit-code", false, "exit with 3 if something is wrong")
	cmd.Flags().BoolVar(&f.utc, "utc", false, "show clock times in UTC instead of local time")
	cmd.Flags().BoolVar(&f.noColour, "no-color", false, "do not use colours (also $NO_COLOR)")
	return cmd
}

func (f *flags) run(ctx context.Context, t cmdline.Terminal, what string) error {
	to, onHost, err := target.Parse(what)
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var answer why.Answer
	via := ""
	if onHost {
		answer, err = f.onMachine(ctx, to)
	} else if err = f.host.Given(); err == nil {
		answer, via, err = f.ofPod(ctx, what)
	}
	if err != nil {
		return err
	}
	if f.output != "" {
		err = cmdline.PrintAs(t, f.output, answer)
	} else {
		f.print(t, answer, via)
	}
	if err == nil && f.exitCode && answer.Wrong {
		return &cmdline.Exit{Code: ExitWrong}
	}
	return err
}

// ofPod answers about a pod, or what makes pods.
func (f *flags) ofPod(ctx context.Context, what string) (why.Answer, string, error) {
	kind, name, err := gather.Parse(what)
	if err != nil {
		return why.Answer{}, "", cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	client, err := f.Connect()
	if err != nil {
		return why.Answer{}, "", err
	}
	facts, err := gather.About(ctx, client, f.Namespace, kind, name)
	if err != nil {
		return why.Answer{}, "", f.host.Hint(ctx, name, err)
	}
	return why.Explain(facts), facts.Via, nil
}

// print writes an answer for a person. What others wrote was put on single lines without controls by package why; the
// filter lets only colours through, which are our own.
func (f *flags) print(t cmdline.Terminal, a why.Answer, via string) {
	zone := time.Local
	if f.utc {
		zone = time.UTC
	}
	width, _ := cmdline.Size(t.Out)
	p := page{width: width, zone: zone, colour: cmdline.IsTerminal(t.Out) && !f.noColour}
	fmt.Fprint(plain.Own(t.Out), plain.Coloured(p.text(a, via)))
}
