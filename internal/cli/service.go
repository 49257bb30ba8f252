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

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cli/service"
	"github.com/wherryproject/wherry/internal/server"
)

func newService(t Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Install the server as a service, or remove it",
		Long: `Run the server at boot and restart it after a failure: with a systemd unit or, where there is no systemd, a script in /etc/init.d.
Pods keep running when the server stops, is replaced by a newer one, or is removed.`,
		Args: cmdline.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newServiceInstall(t), newServiceRemove(t))
	return cmd
}

// serviceFlags are the flags of `wherry service`.
type serviceFlags struct {
	name    string
	dataDir string
	noStart bool
}

func (f *serviceFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "name", reach.ServiceName,
		"name of the service; choose another one for a second server on this machine")
	cmdline.DataDirFlag(cmd, &f.dataDir)
}

func newServiceInstall(t Terminal) *cobra.Command {
	f := &serviceFlags{}
	cmd := &cobra.Command{
		Use:   "install [server|agent] [-- FLAG...]",
		Short: "Run the server, or an agent, now and at boot",
		Long: `Run the server, or an agent, now and at boot. Flags after -- are those of wherry server or wherry agent. To change them, install the
service again: it restarts, and pods keep running.

This writes /etc/systemd/system/wherry.service, or /etc/init.d/wherry where there is no systemd. The service runs the program that
you install it with, so only root may be able to modify that file; make install sees to it.

Exit codes: 1 failure, 2 wrong command line, 10 not root, 12 a server is already using the data folder.`,
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
		return "", nil,
			cmdline.WrongUse(cmd, fmt.Sprintf("unexpected argument %q: name server or agent, and its flags after --",
				before[len(before)-1]))
	}
	return before[0], flags, nil
}

// validName is what both systemd and a file's name take.
var validName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,60}$`)

// check refuses what a start would refuse, and what would make root run others' programs.
func (f *serviceFlags) check(t Terminal, what string, flags []string) error {
	if !validName.MatchString(f.name) {
		return cmdline.ExitWith(exitUsage,
			fmt.Errorf("--name: %q is not a name for a service: use letters, digits and dashes",
				f.name))

	}
	cmd := newServer(t)
	if what == "agent" {
		cmd = newAgent(t)
	}
	err := cmd.ParseFlags(flags)
	switch {
	case err != nil:
		return cmdline.ExitWith(exitUsage, fmt.Errorf("after --: %w\nsee wherry %s --help", err, what))
	case cmd.Flags().NArg() > 0:
		return cmdline.ExitWith(exitUsage, fmt.Errorf("after --: unexpected argument %q: wherry %s takes only flags",
			cmd.Flags().Arg(0), what))

	case cmd.Flags().Changed("data-dir"):
		return cmdline.ExitWith(exitUsage, errors.New("--data-dir goes before the --"))
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
			err = cmdline.ExitWith(exitUsage,
				fmt.Errorf("--%s %s: the service runs in another folder, so use the absolute path: %s", f.Name, file,
					whole))

		}
	})
	return err
}

func (f *serviceFlags) install(ctx context.Context, t Terminal, host service.Host, what string, flags []string) error {
	if err := f.check(t, what, flags); err != nil {
		return err
	}
	if err := onlyAsRoot("only root can install a service"); err != nil {
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
		return cmdline.ExitWith(server.ExitFolderLocked,
			fmt.Errorf("a wherry server (pid %d) is already using %s: stop it first, its pods keep running, or use --no-start", pid, dir))

	}
	args := []string{what}
	if dir != server.DefaultDataDir {
		args = append(args, "--data-dir", dir)
	}
	file, err := host.Install(ctx, service.Service{Name: f.name, Program: program, Args: append(args, flags...)},
		!f.noStart)
	if err != nil {
		return err
	}
	fmt.Fprintln(t.Err, f.installed(host, file))
	return nil
}

// installed says what has been done, and what is left to do.
func (f *serviceFlags) installed(host service.Host, file string) string {
	text := "wrote " + file
	if f.noStart {
		text += "; start the service with sudo " + host.StartCommand(f.name)
	} else {
		text += " and started the service " + f.name
	}
	if !host.StartsAtBoot() {
		text += "\nthis machine has neither systemd nor update-rc.d, chkconfig or rc-update: have " + file +
			" start run at boot"
	}
	return text
}

func newServiceRemove(t Terminal) *cobra.Command {
	f := &serviceFlags{}
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "Stop the service and remove it",
		Long: `Stop the service and remove it. Its pods keep running and its data stays: the next server on the data folder takes over, and
wherry purge removes everything.`,
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
		return cmdline.ExitWith(exitUsage,
			fmt.Errorf("--name: %q is not a name for a service: use letters, digits and dashes",
				f.name))

	}
	if err := onlyAsRoot("only root can remove a service"); err != nil {
		return err
	}
	was, err := host.Remove(ctx, f.name)
	switch {
	case err != nil:
		return err
	case !was:
		fmt.Fprintf(t.Err, "nothing to do: wherry has installed no service %s\n", f.name)
		return nil
	}
	purge := foreground{dataDir: f.dataDir}.command("purge")
	fmt.Fprintf(t.Err,
		"stopped and removed the service %s; its pods keep running and its data stays; to remove everything: %s\n",
		f.name, purge)
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
