// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/service"
	"github.com/wherryproject/wherry/internal/server"
)

func newService(t Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Have the server started at boot; end that",
		Long: `Have the server started at boot and again after a failure, by systemd, or, where there is no systemd, by a script in /etc/init.d.
Pods run on whenever the server stops, is replaced by a newer one, or is removed.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newServiceInstall(t), newServiceRemove(t))
	return cmd
}

// serviceFlags are what `wherry service` is told.
type serviceFlags struct {
	name    string
	dataDir string
	noStart bool
}

func (f *serviceFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "name", serviceName, "name of the service, for a second server on this machine")
	dataDirFlag(cmd, &f.dataDir)
}

// serviceName is what the service is called unless told.
const serviceName = "wherry"

func newServiceInstall(t Terminal) *cobra.Command {
	f := &serviceFlags{}
	cmd := &cobra.Command{
		Use:   "install [server|agent] [-- FLAG...]",
		Short: "Have the server, or an agent, started now and at boot",
		Long: `Have the server, or an agent, started now and at boot. Flags after -- are those of wherry server or wherry agent. To change them,
install it again; it is started anew then, and pods run on.

It writes /etc/systemd/system/wherry.service, or /etc/init.d/wherry where there is no systemd. It starts the very program that it is
called by, which therefore must be one that only root can change, as make install puts it.

Exit codes: 1 failure, 2 wrong command line, 10 not root, 12 a server runs on the data folder already.`,
		Example: `  sudo wherry service install
  sudo wherry service install -- --write-kubeconfig-group docker
  sudo wherry service install agent -- --kubeconfig /etc/wherry/agent.yaml
  sudo wherry service install --name second --data-dir /srv/second -- --secure-port 7443 --kubelet-port 11250`,
		RunE: func(cmd *cobra.Command, args []string) error {
			what, flags, err := serviceArgs(cmd, args)
			if err != nil {
				return err
			}
			return f.install(cmd.Context(), t, service.ThisMachine(), what, flags)
		},
		ValidArgs: []string{"server", "agent"},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.noStart, "no-start", false, "do not start it now, only at boot")
	return cmd
}

// serviceArgs reads what is to be started, and its flags.
func serviceArgs(cmd *cobra.Command, args []string) (what string, flags []string, err error) {
	before := args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		before, flags = args[:dash], args[dash:]
	}
	switch {
	case len(before) == 0:
		return "server", flags, nil
	case len(before) > 1 || before[0] != "server" && before[0] != "agent":
		return "", nil, wrongUse(cmd, fmt.Sprintf("unexpected argument %q: name server or agent, and its flags after --", before[len(before)-1]))
	}
	return before[0], flags, nil
}

// validName is what both systemd and a file's name take.
var validName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,60}$`)

// check refuses what a start would refuse, and what would make root run others' programs.
func (f *serviceFlags) check(t Terminal, what string, flags []string) error {
	if !validName.MatchString(f.name) {
		return &Exit{exitUsage, fmt.Errorf("--name: %q is not a name for a service: use letters, digits and dashes", f.name)}
	}
	cmd := newServer(t)
	if what == "agent" {
		cmd = newAgent(t)
	}
	err := cmd.ParseFlags(flags)
	switch {
	case err != nil:
		return &Exit{exitUsage, fmt.Errorf("after --: %w\nsee wherry %s --help", err, what)}
	case cmd.Flags().NArg() > 0:
		return &Exit{exitUsage, fmt.Errorf("after --: unexpected argument %q: wherry %s takes only flags", cmd.Flags().Arg(0), what)}
	case cmd.Flags().Changed("data-dir"):
		return &Exit{exitUsage, errors.New("--data-dir goes before the --")}
	}
	return wholePaths(cmd)
}

// wholePaths refuses files of the folder that the user is in: a service is started in another one.
func wholePaths(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		file := f.Value.String()
		if f.Value.Type() != "string" || file == "" || filepath.IsAbs(file) {
			return
		}
		if _, there := os.Stat(file); there != nil {
			return
		}
		if whole, e := filepath.Abs(file); e == nil {
			err = &Exit{exitUsage, fmt.Errorf("--%s %s: a service is started in another folder; write the path whole: %s", f.Name, file, whole)}
		}
	})
	return err
}

func (f *serviceFlags) install(ctx context.Context, t Terminal, host service.Host, what string, flags []string) error {
	if err := f.check(t, what, flags); err != nil {
		return err
	}
	if err := onlyAsRoot("only root may install a service"); err != nil {
		return err
	}
	dir, err := filepath.Abs(f.dataDir)
	if err != nil {
		return err
	}
	program, err := ownProgram()
	if err != nil {
		return err
	}
	installed := host.StartCommand(f.name) != ""
	if pid, _ := server.LockHolder(dir); server.Locked(dir) && !installed && !f.noStart {
		return &Exit{server.ExitFolderLocked, fmt.Errorf("a wherry server (pid %d) runs on %s already: stop it first, its pods run on; or give --no-start", pid, dir)}
	}
	args := []string{what}
	if dir != server.DefaultDataDir {
		args = append(args, "--data-dir", dir)
	}
	file, err := host.Install(ctx, service.Service{Name: f.name, Program: program, Args: append(args, flags...)}, !f.noStart)
	if err != nil {
		return err
	}
	fmt.Fprintln(t.Err, f.installed(host, file))
	return nil
}

// installed says what has been done, and what is left to do.
func (f *serviceFlags) installed(host service.Host, file string) string {
	text := file + " is written"
	switch {
	case f.noStart:
		text += "; start it with sudo " + host.StartCommand(f.name)
	default:
		text += ", and the service " + f.name + " is started"
	}
	if !host.StartsAtBoot() {
		text += "\nthis machine has neither systemd nor update-rc.d, chkconfig or rc-update: see to it that " + file + " start is run at boot"
	}
	return text
}

func newServiceRemove(t Terminal) *cobra.Command {
	f := &serviceFlags{}
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "Stop the service and take it away",
		Long: `Stop the service and take it away. Its pods run on and its data stays: the next server on the data folder takes over, and
wherry purge ends everything.`,
		Example: `  sudo wherry service remove
  sudo wherry service remove --name second --data-dir /srv/second`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.remove(cmd.Context(), t, service.ThisMachine())
		},
	}
	f.add(cmd)
	return cmd
}

func (f *serviceFlags) remove(ctx context.Context, t Terminal, host service.Host) error {
	if !validName.MatchString(f.name) {
		return &Exit{exitUsage, fmt.Errorf("--name: %q is not a name for a service: use letters, digits and dashes", f.name)}
	}
	if err := onlyAsRoot("only root may remove a service"); err != nil {
		return err
	}
	was, err := host.Remove(ctx, f.name)
	switch {
	case err != nil:
		return err
	case !was:
		fmt.Fprintf(t.Err, "nothing to do: there is no service %s of wherry's making\n", f.name)
		return nil
	}
	purge := foreground{dataDir: f.dataDir}.command("purge")
	fmt.Fprintf(t.Err, "the service %s is stopped and removed; its pods run on and its data stays; to end everything: %s\n", f.name, purge)
	return nil
}

func onlyAsRoot(why string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	return &server.Refusal{Code: server.ExitNotRoot, What: why, Do: "run it with sudo"}
}

// ownProgram is the file of this program, if root may run it at each boot.
func ownProgram() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return "", err
	}
	return program, service.Trusted(program)
}

// startCommand is the command that starts the server of a data folder: the service, if that is how it is started here.
func startCommand(dataDir string) string {
	if dataDir != server.DefaultDataDir {
		return "sudo wherry server --data-dir " + dataDir
	}
	if command := service.ThisMachine().StartCommand(serviceName); command != "" && dataDir == ask.DataDir() {
		return "sudo " + command
	}
	return "sudo wherry server"
}
