// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
)

// WrongUse is an error about a command line, with the way to the command's help and the exit code for that.
func WrongUse(cmd *cobra.Command, text string) error {
	return ExitWith(ExitUsage, fmt.Errorf("%s\nsee %s --help", text, cmd.CommandPath()))
}

// NoSuchCommand is the check of the arguments of a command that only groups others.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := instead(cmd, args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return WrongUse(cmd, text)
}

// instead are the commands that somebody may have meant by name: kubectl's and docker's users come with their habits.
func instead(cmd *cobra.Command, name string) []string {
	if cmd.HasParent() {
		return nearest(name, (len(name)+1)/2, cmd)
	}
	if of, ok := map[string]string{
		"po": "kubectl get pods", "pods": "kubectl get pods", "inspect": "image inspect",
		"rm": "kubectl delete pod", "stop": "kubectl delete pod", "kill": "kubectl delete pod", "pull": "image pull",
		"load": "image import", "save": "image export", "rmi": "image rm", "tag": "image tag", "prune": "image prune",
		"login": "image login", "shell": "debug", "sh": "debug", "start": "server", "serve": "server", "up": "server",
		"join": "agent", "install": "service install", "uninstall": "service remove",
	}[name]; ok {
		if found, _, err := cmd.Find(strings.Fields(of)); err == nil && found != cmd &&
			(found.Name() == "kubectl" || !found.HasSubCommands()) {
			return []string{"wherry " + of}
		}
	}
	kubectl := kubectlcmd.NewDefaultKubectlCommand()
	switch {
	case slices.ContainsFunc(kubectl.Commands(),
		func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) }):
		return []string{"wherry kubectl " + name}
	case slices.Contains(kindWords(), strings.ToLower(name)):
		return []string{"wherry kubectl get " + name}
	}
	return nearest(name, (len(name)+1)/2, cmd, kubectl)
}

// nearest are the commands below several with the names that are fewest letters away from a word, and no more than
// most. Of two with one name the first counts.
func nearest(word string, most int, cmds ...*cobra.Command) (near []string) {
	for away := 1; away <= min(2, most); away++ { // any two letters are two changes away from any others
		seen := map[string]bool{}
		for _, cmd := range cmds {
			path := cmd.CommandPath()
			if path == "kubectl" {
				path = "wherry kubectl"
			}
			cmd.SuggestionsMinimumDistance = away
			for _, name := range cmd.SuggestionsFor(word) {
				if !seen[name] {
					near = append(near, path+" "+name)
				}
				seen[name] = true
			}
		}
		if len(near) > 0 {
			return near
		}
	}
	return nil
}

// kindWords are the words that kubectl get takes for what a server has most often.
func kindWords() []string {
	return strings.Fields(`all pod pods po node nodes no service services svc deployment deployments deploy replicaset
		replicasets rs statefulset statefulsets sts daemonset daemonsets ds job jobs cronjob cronjobs cj configmap
		configmaps cm secret secrets namespace namespaces ns event ev persistentvolume persistentvolumes pv pvc
		persistentvolumeclaim persistentvolumeclaims storageclass storageclasses sc serviceaccount serviceaccounts sa
		ingress ingresses ing networkpolicy networkpolicies netpol endpoints ep endpointslices hpa crd crds roles
		rolebindings clusterroles clusterrolebindings csr quota resourcequotas limits limitranges pdb leases`)
}

// UnknownFirst is the error about a command that is not there, if that is what is wrong with args: cobra looks at the
// flags first, which are those of a command it does not know.
func UnknownFirst(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil || len(rest) == 0 || strings.HasPrefix(rest[0], "-") || cmd.HasParent() && !groupsOnly(cmd) {
		return nil
	}
	return NoSuchCommand(cmd, rest)
}

// groupsOnly reports whether a command does nothing itself.
func groupsOnly(cmd *cobra.Command) bool {
	return cmd.HasSubCommands() && cmd.Args != nil && cmd.Args(cmd, []string{""}) != nil
}

// WrongFlag says what is wrong with a command's flags.
func WrongFlag(cmd *cobra.Command, err error) error {
	text := err.Error()
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		text = unknownFlag(cmd, unknown)
	}
	if lacks, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		text = fmt.Sprintf("--%s needs a value", lacks.GetFlag().Name)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		text = fmt.Sprintf("--%s: %s", invalid.GetFlag().Name, invalidValue(invalid))
	}
	return WrongUse(cmd, text)
}

func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) string {
	name := err.GetSpecifiedName()
	if err.GetSpecifiedShortnames() != "" {
		return "unknown flag: -" + name
	}
	var near []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && (strings.HasPrefix(f.Name, name) || strings.HasPrefix(name, f.Name)) {
			near = append(near, "--"+f.Name)
		}
	})
	if len(near) == 0 {
		near = nearFlags(cmd, name)
	}
	text := "unknown flag: --" + name
	if len(near) > 0 && len(near) <= 3 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return text
}

// nearFlags are the flags whose names are fewest letters away from a word, found as commands are.
func nearFlags(cmd *cobra.Command, word string) (near []string) {
	names := &cobra.Command{Use: "-"}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	for _, found := range nearest(word, (len(word)+1)/3, names) {
		near = append(near, "--"+strings.TrimPrefix(found, "- "))
	}
	return near
}

func invalidValue(err *pflag.InvalidValueError) string {
	switch err.GetFlag().Value.Type() {
	case "int", "int32", "int64", "uint":
		return fmt.Sprintf("%q is not a whole number", err.GetValue())
	case "duration":
		return fmt.Sprintf("%q is not a duration, for example 90s, 30m or 8h", err.GetValue())
	case "bool":
		return fmt.Sprintf("%q is neither true nor false", err.GetValue())
	}
	return err.Unwrap().Error()
}

// WrongArguments says in our words what cobra's checks of a number of arguments found.
func WrongArguments(cmd *cobra.Command, args []string, err error) error {
	var exit *Exit
	if errors.As(err, &exit) {
		return err
	}
	want := strings.Fields(cmd.Use)[1:]
	most, few := 0, false
	switch text := err.Error(); {
	case strings.HasPrefix(text, "requires at least"):
		few = true
	case scanned(text, "accepts at most %d arg(s)", &most):
	case scanned(text, "accepts %d arg(s)", &most):
		few = len(args) < most
	case !strings.HasPrefix(text, "unknown command"):
		return WrongUse(cmd, text)
	}
	if few && len(args) < len(want) {
		return WrongUse(cmd, fmt.Sprintf("%s is missing: %s %s", strings.TrimSuffix(want[len(args)], "..."),
			cmd.CommandPath(), strings.Join(want, " ")))
	}
	if most == 0 {
		return WrongUse(cmd, fmt.Sprintf("unexpected argument %q: %s takes only flags", args[0], cmd.CommandPath()))
	}
	return WrongUse(cmd, fmt.Sprintf("unexpected argument %q: %s %s", args[most], cmd.CommandPath(),
		strings.Join(want, " ")))
}

func scanned(text, format string, n *int) bool {
	_, err := fmt.Sscanf(text, format, n)
	return err == nil
}
