// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server"
)

// Anything is a value of these flags: names that others give, and files and folders that need not be there yet.
var takesAnything = []string{
	"api-audiences", "data-dir", "debug-image-allow", "etcd-prefix", "etcd-snapshot-dir", "pod-manifest-path", "registry-hosts-dir", "service-account-issuer",
	"write-kubeconfig",
}

// A nonsense value of any of the server's flags is refused before anything is started, as incorrect usage: the message names the
// flag and does not begin with the name of a part of the server.
func TestNonsenseForServerFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	var names []string
	all := &cobra.Command{}
	serverFlags(all, Terminal{}, &server.Options{})
	new(cmdline.LogFlags).AddTo(all)
	all.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, name := range names {
		for _, value := range nonsense(all.Flags().Lookup(name)) {
			t.Run(name+"="+value, func(t *testing.T) {
				opts := server.Defaults()
				opts.DataDir = filepath.Join(t.TempDir(), "data")
				var logs cmdline.LogFlags
				cmd := &cobra.Command{Use: "server", RunE: func(*cobra.Command, []string) error {
					_, err := logs.Logger(io.Discard)
					if err != nil {
						return err
					}
					if opts.FeatureGates, err = setGates(opts.FeatureGates); err != nil {
						return err
					}
					if _, err = server.New(opts, nil); err != nil { // it starts nothing
						return cmdline.ExitWith(exitUsage, err)
					}
					return nil
				}}
				serverFlags(cmd, Terminal{}, &opts)
				logs.AddTo(cmd)
				cmd.SetFlagErrorFunc(cmdline.WrongFlag)
				cmd.SilenceErrors, cmd.SilenceUsage = true, true
				cmd.SetArgs([]string{"--" + name + "=" + value})
				err := cmd.Execute()
				var exit *Exit
				switch {
				case slices.Contains(takesAnything, name):
				case !errors.As(err, &exit) || exit.Code != exitUsage:
					t.Errorf("it is taken: %v", err)
				case !strings.HasPrefix(err.Error(), "--") || !strings.Contains(err.Error(), "--"+name) && !strings.HasPrefix(name, "oidc-"):
					t.Errorf("the message does not name the flag: %v", err)
				}
			})
		}
	}
}

// nonsense is a value that a flag of its type cannot have. One less than zero is not always wrong, and has a case of its own where it is.
func nonsense(f *pflag.Flag) []string {
	less := []string{
		"audit-log-batch-buffer-size", "audit-log-batch-max-size", "audit-log-batch-throttle-burst", "audit-log-batch-throttle-qps",
		"audit-log-truncate-max-batch-size", "audit-log-truncate-max-event-size", "audit-webhook-truncate-max-batch-size",
		"audit-webhook-truncate-max-event-size", "max-image-execs", "max-image-execs-per-namespace", "max-image-execs-per-pod", "v",
	}
	if slices.Contains(less, f.Name) {
		return []string{"%nonsense", "-7"}
	}
	return []string{"%nonsense"}
}

// A format that a command does not have is refused before the command does or asks anything.
func TestNonsenseForOutput(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("WHERRY_DATA_DIR", filepath.Join(t.TempDir(), "none"))
	tried := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		f := cmd.Flags().Lookup("output")
		if f == nil || !strings.Contains(f.Usage, "json") || cmd.Name() == "run" { // which wants to know first what to run
			return
		}
		tried++
		args := strings.Fields(cmd.CommandPath())[1:]
		for _, word := range strings.Fields(cmd.Use)[1:] {
			if strings.HasPrefix(word, "[") {
				break
			}
			args = append(args, "x")
		}
		var errs strings.Builder
		code := run(Terminal{Out: io.Discard, Err: &errs}, append(args, "-o", "nonsense"))
		if code != exitUsage || !strings.Contains(errs.String(), "-o nonsense: use ") {
			t.Errorf("%s: code %d, %s", cmd.CommandPath(), code, errs.String())
		}
	}
	walk(New(Terminal{Out: io.Discard, Err: io.Discard}))
	if tried < 8 {
		t.Errorf("only %d commands have a format", tried)
	}
}
