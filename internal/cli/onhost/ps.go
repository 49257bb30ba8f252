// SPDX-License-Identifier: Apache-2.0

package onhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// psFlags are the flags of wherry ps.
type psFlags struct {
	Flags
	all      bool
	sessions bool
	output   string
}

// NewPs returns wherry ps.
func NewPs(t cmdline.Terminal) *cobra.Command {
	f := &psFlags{}
	cmd := &cobra.Command{
		Use:   "ps [docker|podman|containerd|cri|pid|systemd]...",
		Short: "List the containers of this machine that can be debugged",
		Long: `List the containers of this machine that can be debugged, with the names by which wherry debug, exec and cp take them.

Without arguments it asks those of Docker, podman and containerd that are on this machine; cri, systemd and pid are asked only if they are
named. No server is needed. Pods of a Wherry server are listed by wherry kubectl get pods.`,
		Example: `  sudo wherry ps
  sudo wherry ps -a docker                  # with those that have exited: their last files can be looked at
  sudo wherry ps systemd
  sudo wherry ps --sessions                 # who debugs what on this machine now
  sudo wherry debug $(sudo wherry ps -o name | head -1)`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), t, args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return engineNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	f.AddAddress(cmd.Flags())
	cmd.Flags().BoolVarP(&f.all, "all", "a", false, "also list those that are not running")
	cmd.Flags().BoolVar(&f.sessions, "sessions", false, "list the debug sessions of this machine instead")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "output format: json, yaml or name")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml", "name"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func engineNames() (names []string) {
	for _, e := range target.Engines() {
		names = append(names, string(e))
	}
	return names
}

// row is a target in a list.
type row struct {
	Target    string    `json:"target"`
	Name      string    `json:"name"`
	ID        string    `json:"id,omitempty"`
	Image     string    `json:"image,omitempty"`
	State     string    `json:"state"`
	PID       int       `json:"pid,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

func (f *psFlags) run(ctx context.Context, t cmdline.Terminal, args []string) error {
	kinds, err := kindsOf(args)
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	if !slices.Contains([]string{"", "json", "yaml", "name"}, f.output) {
		return cmdline.ExitWith(cmdline.ExitUsage, fmt.Errorf("-o %s: use json, yaml or name", f.output))
	}
	if f.Address != "" && len(args) != 1 {
		return cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("--address: name the one engine that it is the socket of"))
	}
	if os.Geteuid() != 0 {
		return errors.New("listing the containers of this machine needs root: run it with sudo")
	}
	if f.sessions {
		return f.printSessions(t)
	}
	var all []*engines.Container
	var failed []error
	for _, kind := range kinds {
		list, err := f.list(ctx, kind)
		var absent *enginesocket.Absent
		switch {
		case errors.As(err, &absent) && len(args) == 0:
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", kind, err))
		}
		all = append(all, list...)
	}
	if err := f.print(t, rows(all, f.all)); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// kindsOf are the engines that are meant.
func kindsOf(args []string) ([]target.Engine, error) {
	if len(args) == 0 {
		return []target.Engine{target.Docker, target.Podman, target.Containerd}, nil
	}
	var kinds []target.Engine
	for _, a := range args {
		if !slices.Contains(engineNames(), a) {
			return nil, fmt.Errorf("there is no engine %q: name one of %s", a, strings.Join(engineNames(), ", "))
		}
		kinds = append(kinds, target.Engine(a))
	}
	return kinds, nil
}

func (f *psFlags) list(ctx context.Context, kind target.Engine) ([]*engines.Container, error) {
	e, done, err := hostdebug.Engine(ctx, kind, f.Options())
	if err != nil {
		return nil, err
	}
	list, err := e.List(ctx)
	return list, errors.Join(err, done())
}

// rows are what of a list is shown, by name; a container that Docker has in containerd is Docker's.
func rows(all []*engines.Container, ended bool) []row {
	docker := map[string]bool{}
	for _, c := range all {
		if c.Target.Engine == target.Docker {
			docker[c.ID] = true
		}
	}
	out := []row{}
	for _, c := range all {
		alive := c.State == engines.Running || c.State == engines.Paused
		if !alive && !ended || c.Target.Engine == target.Containerd && docker[c.ID] {
			continue
		}
		out = append(out, row{Target: c.Target.String(), Name: c.Name, ID: c.ID, Image: c.Image, State: string(c.State),
			PID: c.PID, CreatedAt: c.Created.UTC()})
	}
	return out
}

func (f *psFlags) print(t cmdline.Terminal, rows []row) error {
	switch f.output {
	case "json", "yaml":
		return cmdline.PrintAs(t, f.output, rows)
	case "name":
		for _, r := range rows {
			fmt.Fprintln(t.Out, r.Target)
		}
		return nil
	}
	table := cmdline.Table{Head: []string{"TARGET", "IMAGE", "STATE", "AGE"}, None: "no containers found"}
	for _, r := range rows {
		age := "<unknown>"
		if r.CreatedAt.Year() > 1970 {
			age = duration.HumanDuration(time.Since(r.CreatedAt))
		}
		table.Add(r.Target, r.Image, r.State, age)
	}
	return table.Print(t)
}
