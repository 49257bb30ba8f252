// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// OwnWords replaces what cobra says by itself, in help and by the commands that it adds, with our words. The tree must
// be whole. other is the group of the added commands.
func OwnWords(root *cobra.Command, other string) {
	root.SetUsageTemplate(strings.NewReplacer(
		`Use "{{.CommandPath}} [command] --help" for more information about a command.`,
		"{{.CommandPath}} COMMAND --help prints the help of a command.",
		"{{.CommandPath}} [command]", "{{.CommandPath}} COMMAND",
		"Available Commands:", "Commands:",
		"Additional Commands:", "Others:",
	).Replace(root.UsageTemplate()))
	root.SetHelpCommand(newHelp(root, other))
	root.InitDefaultHelpCmd()
	root.SetCompletionCommandGroupID(other)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			completionWords(c)
		}
	}
	root.Flags().BoolP("version", "v", false, "print the version of wherry")
	helpFlags(root)
}

// helpFlags adds the flag that cobra would add, which must also be marked as cobra's for its completion.
func helpFlags(cmd *cobra.Command) {
	if cmd.Flags().Lookup("help") == nil && !cmd.DisableFlagParsing {
		cmd.Flags().BoolP("help", "h", false, "print this help")
		// fails only for no flag
		_ = cmd.Flags().SetAnnotation("help", cobra.FlagSetByCobraAnnotation, []string{"true"})
	}
	for _, c := range cmd.Commands() {
		helpFlags(c)
	}
}

// newHelp returns wherry help. Unlike cobra's own it refuses what is not a command.
func newHelp(root *cobra.Command, group string) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND...]",
		GroupID: group,
		Short:   "Print the help of a command",
		Long:    "Print the help of a command; the same as its flag --help.",
		Example: `  wherry help run
  wherry help image pull`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var words []cobra.Completion
			for _, c := range cmd.Commands() {
				if (c.IsAvailableCommand() || c.Name() == "help") && strings.HasPrefix(c.Name(), prefix) {
					words = append(words, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			switch {
			case err != nil:
				return err
			case len(rest) > 0 && cmd.DisableFlagParsing: // kubectl, which has commands of its own
				return cmd.RunE(cmd, append(rest, "--help"))
			case len(rest) > 0:
				return NoSuchCommand(cmd, rest)
			}
			return cmd.Help()
		},
	}
}

// completionWords says in our words what the commands do that cobra makes for completion.
func completionWords(cmd *cobra.Command) {
	cmd.Short = "Print a script that makes a shell complete commands, flags and names"
	cmd.Long = "Print a script that makes a shell complete commands, flags and names. The help of each shell's command says " +
		"how to use it."
	how := map[string][2]string{
		"bash":       {"source <(%[1]s)", "%[1]s | sudo tee /etc/bash_completion.d/wherry >/dev/null"},
		"zsh":        {"source <(%[1]s)", `%[1]s >"${fpath[1]}/_wherry"`},
		"fish":       {"%[1]s | source", "%[1]s >~/.config/fish/completions/wherry.fish"},
		"powershell": {"%[1]s | Out-String | Invoke-Expression", "%[1]s >>$PROFILE"},
	}
	needs := map[string]string{
		"bash": " It needs the package bash-completion.",
		"zsh":  " Completion must be on: autoload -U compinit; compinit.",
	}
	for _, c := range cmd.Commands() {
		shell := c.Name()
		script := "wherry completion " + shell
		c.Short = "Print the script for " + shell
		c.Long = c.Short + "." + needs[shell]
		c.Example = fmt.Sprintf("  "+how[shell][0]+"   # for this shell\n  "+how[shell][1]+"   # for every new one",
			script)
		if f := c.Flags().Lookup("no-descriptions"); f != nil {
			f.Usage = "complete without descriptions"
		}
	}
}
