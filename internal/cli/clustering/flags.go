// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cluster/manifest"
	"github.com/wherryproject/wherry/internal/release"
)

// values are the flags that choose what is installed: a file as Helm takes it, and what is chosen most.
type values struct {
	file  string
	flags manifest.Values
	of    *pflag.FlagSet
}

func (v *values) addTo(cmd *cobra.Command) {
	f, to := cmd.Flags(), &v.flags
	v.of = f
	f.StringVarP(&v.file, "values", "f", "",
		"file of values, as wherry cluster chart writes one; - for standard input; flags override it")
	f.StringVarP(&to.Namespace, "namespace", "n", "", "namespace to install in; default: wherry-debug")
	f.StringVar(&to.Image, "image", "", "image of Wherry; default: "+manifest.Image(release.Version()))
	f.StringVar(&to.ImagePullPolicy, "image-pull-policy", "", "Always, IfNotPresent or Never; default: IfNotPresent")
	f.StringSliceVar(&to.ImagePullSecrets, "image-pull-secret", nil,
		"Secret in that namespace with a login for the registry; may be given more than once")
	cmdline.Pairs(f, &to.Agent.NodeSelector, "node-selector",
		"`LABEL=VALUE` of the nodes that get an agent; default: all")
	f.StringVar(&to.Agent.CRISocket, "cri-socket", "",
		"socket of the container runtime on the nodes; default: the usual places")
	f.StringVar(&to.PriorityClass, "priority-class", "", "PriorityClass of the pods; default: the cluster's")
	f.IntVar(&to.API.Replicas, "replicas", 0, "number of pods of the API; default: 2")
	f.StringVar(&to.Limits.MaxTTL, "max-ttl", "", "maximum duration of a session; default: 8h")
	f.StringVar(&to.Limits.MaxMemory, "max-memory", "", "maximum memory of a session; default: 2Gi")
	f.BoolVar(&to.Aggregate, "aggregate-to-default-roles", false,
		"also grant wherry-debug to everybody who has the role edit or admin in a namespace")
	_ = cmd.MarkFlagFilename("values", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("image-pull-policy", cobra.FixedCompletions(
		[]string{"Always", "IfNotPresent", "Never"}, cobra.ShellCompDirectiveNoFileComp))
}

// chosen are the values of the file and the flags, over those that were chosen before, if there are any.
func (v *values) chosen(t cmdline.Terminal, before []byte) (manifest.Values, error) {
	text, err := v.read(t)
	if err != nil {
		return manifest.Values{}, err
	}
	all, err := manifest.Parse(before, text)
	if err == nil {
		err = v.over(&all).Check()
	}
	if err != nil {
		return manifest.Values{}, cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	return all, nil
}

func (v *values) read(t cmdline.Terminal) ([]byte, error) {
	switch v.file {
	case "":
		return nil, nil
	case "-":
		return io.ReadAll(t.In)
	}
	text, err := os.ReadFile(v.file)
	if at, ok := errors.AsType[*os.PathError](err); ok {
		err = cmdline.ExitWith(cmdline.ExitUsage, fmt.Errorf("%s: %w", v.file, at.Err))
	}
	return text, err
}

// over puts what flags say over what is in all.
func (v *values) over(all *manifest.Values) *manifest.Values {
	from := v.flags
	set := map[string]func(){
		"namespace":                  func() { all.Namespace = from.Namespace },
		"image":                      func() { all.Image = from.Image },
		"image-pull-policy":          func() { all.ImagePullPolicy = from.ImagePullPolicy },
		"image-pull-secret":          func() { all.ImagePullSecrets = from.ImagePullSecrets },
		"cri-socket":                 func() { all.Agent.CRISocket = from.Agent.CRISocket },
		"priority-class":             func() { all.PriorityClass = from.PriorityClass },
		"replicas":                   func() { all.API.Replicas = from.API.Replicas },
		"max-ttl":                    func() { all.Limits.MaxTTL = from.Limits.MaxTTL },
		"max-memory":                 func() { all.Limits.MaxMemory = from.Limits.MaxMemory },
		"aggregate-to-default-roles": func() { all.Aggregate = from.Aggregate },
		"node-selector": func() {
			if all.Agent.NodeSelector == nil {
				all.Agent.NodeSelector = map[string]string{}
			}
			maps.Copy(all.Agent.NodeSelector, from.Agent.NodeSelector)
		},
	}
	v.of.Visit(func(f *pflag.Flag) {
		if put := set[f.Name]; put != nil {
			put()
		}
	})
	return all
}
