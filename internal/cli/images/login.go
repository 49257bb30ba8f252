// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/registry"
)

func newImageLogin(t cmdline.Terminal) *cobra.Command {
	var user, password string
	var fromStdin bool
	cmd := &cobra.Command{
		Use:   "login REGISTRY",
		Short: "Log the node in to a registry",
		Long: `Log the node in to a registry: if the registry accepts the user and password, they are stored in
<data-dir>/config.json, which only root can read. From then on they are used to pull all pods' images, and those of image pull, run
and exec -m; a pod's own imagePullSecrets come first.

Prompts for a user or password that is not given.`,
		Example: `  sudo wherry image login registry.example.com
  sudo wherry image login -u ann --password-stdin registry.example.com:5000 < password`,
		Args: cobra.ExactArgs(1),
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if fromStdin && (user == "" || password != "") {
			return cmdline.ExitWith(cmdline.ExitUsage,
				errors.New("--password-stdin reads only the password: give the user with -u, and do not use -p"))

		}
		login, err := askLogin(t, user, password, fromStdin)
		if err != nil {
			return cmdline.ExitWith(cmdline.ExitUsage, err)
		}
		got, err := client().Login(cmd.Context(), args[0], login)
		if err != nil {
			return err
		}
		if !got.Asked {
			fmt.Fprintf(t.Err, "%s is open to everyone and did not check the password\n", got.Registry)
		}
		fmt.Fprintf(t.Out, "logged in to %s as %s; stored in %s\n", got.Registry, login.User, got.File)
		return nil
	}
	fl := cmd.Flags()
	fl.StringVarP(&user, "username", "u", "", "user")
	fl.StringVarP(&password, "password", "p", "",
		"password; every process on this machine can see it on a command line, so --password-stdin is safer")
	fl.BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func newImageLogout(t cmdline.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "logout REGISTRY",
		Short:   "Remove the node's login to a registry",
		Example: "  sudo wherry image logout registry.example.com",
		Args:    cobra.ExactArgs(1),
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		got, err := client().Logout(cmd.Context(), args[0])
		if err == nil {
			fmt.Fprintf(t.Out, "logged out of %s\n", got.Registry)
		}
		return err
	}
	return cmd
}

// credentials reads --creds USER[:PASSWORD], nil for none. A password that is missing is asked for.
func credentials(t cmdline.Terminal, text string) (*registry.Login, error) {
	if text == "" {
		return nil, nil
	}
	user, password, _ := strings.Cut(text, ":")
	login, err := askLogin(t, user, password, false)
	return &login, err
}

// askLogin asks for what of a login is not given.
func askLogin(t cmdline.Terminal, user, password string, fromStdin bool) (registry.Login, error) {
	l := registry.Login{User: user, Password: password}
	if fromStdin {
		text, err := io.ReadAll(io.LimitReader(t.In, 1<<16))
		l.Password = strings.TrimRight(string(text), "\r\n")
		if err == nil && l.Password == "" {
			err = errors.New("there is no password on standard input")
		}
		return l, err
	}
	if l.User != "" && l.Password != "" {
		return l, nil
	}
	if !ask.IsTerminal(t.In) {
		return l,
			errors.New("user or password is missing, and there is no terminal to prompt on: use -u USER --password-stdin, or --creds USER:PASSWORD")
	}
	if l.User == "" {
		fmt.Fprint(t.Err, "User: ")
		line, err := bufio.NewReader(t.In).ReadString('\n')
		if l.User = strings.TrimSpace(line); err != nil || l.User == "" {
			return l, errors.New("no user was given")
		}
	}
	if l.Password == "" {
		var err error
		if l.Password, err = askPassword(t); err != nil {
			return l, err
		}
	}
	return l, nil
}

// askPassword asks at the terminal, which shows nothing of the answer.
func askPassword(t cmdline.Terminal) (string, error) {
	file, ok := t.In.(*os.File)
	if !ok {
		return "", errors.New("there is no terminal to prompt on")
	}
	fmt.Fprint(t.Err, "Password: ")
	text, err := term.ReadPassword(int(file.Fd()))
	fmt.Fprintln(t.Err)
	if err == nil && len(text) == 0 {
		err = errors.New("no password was given")
	}
	return string(text), err
}
