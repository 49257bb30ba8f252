// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

func DataDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "data-dir", ask.DataDir(), "data folder of the server (also $WHERRY_DATA_DIR)")
	_ = cmd.MarkFlagDirname("data-dir") // fails only for a flag that is not there
}

// EveryDataDir has the commands take --data-dir that have no use for it: who gives it to every command, as in a script,
// need not know which. Help does not show it there.
func EveryDataDir(cmd *cobra.Command) {
	if !cmd.DisableFlagParsing && cmd.Flag("data-dir") == nil { // nor one for all below it
		cmd.Flags().String("data-dir", "", "has no effect here")
		_ = cmd.Flags().MarkHidden("data-dir") // fails only for a flag that is not there
	}
	for _, c := range cmd.Commands() {
		EveryDataDir(c)
	}
}

// Pairs adds a flag of KEY=VALUE pairs whose help names no default, which pflag would show as [].
func Pairs(f *pflag.FlagSet, to *map[string]string, name, usage string) {
	f.StringToStringVar(to, name, nil, usage)
	f.Lookup(name).DefValue = ""
}

func OutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().VarP(format{output}, "output", "o", "json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"},
		cobra.ShellCompDirectiveNoFileComp))
}

// format is a flag's value: json or yaml, which is checked before anything else is done.
type format struct{ name *string }

// String implements pflag.Value.
func (f format) String() string {
	if f.name == nil {
		return ""
	}
	return *f.name
}

// Set implements pflag.Value.
func (f format) Set(text string) error {
	if lower := strings.ToLower(text); lower != "json" && lower != "yaml" {
		return fmt.Errorf("-o %s: use json or yaml", text)
	}
	*f.name = text
	return nil
}

// Type implements pflag.Value.
func (format) Type() string { return "string" }

// PrintAs prints v as json or yaml.
func PrintAs(t Terminal, format string, v any) error {
	var text []byte
	var err error
	switch strings.ToLower(format) {
	case "json":
		text, err = json.MarshalIndent(v, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(v)
	default:
		return ExitWith(ExitUsage, fmt.Errorf("-o %s: use json or yaml", format))
	}
	if err != nil {
		return err
	}
	_, err = t.Out.Write(text)
	return err
}

// Host adds the flag for the data folder and returns a way to its server.
func Host(cmd *cobra.Command) func() *hostapi.Client {
	var dir string
	DataDirFlag(cmd, &dir)
	return func() *hostapi.Client {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		return hostapi.NewClient(datadir.Socket(dir))
	}
}

// InspectWord is the command by which the program reads a database file that may be damaged in a process of its own.
const InspectWord = "inspect-database"

func Inspector() []string { return []string{"/proc/self/exe", InspectWord} }
