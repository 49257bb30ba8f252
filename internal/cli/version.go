// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/server"
)

// versions are what this program is made of.
type versions struct {
	Wherry     string `json:"wherry"`
	Kubernetes string `json:"kubernetes"`
	Containerd string `json:"containerd"`
	Runc       string `json:"runc"`
	Etcd       string `json:"etcd"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

// bundledRunc is set by the linker (Makefile): runc is a program of its own, which this one's build does not know of.
var bundledRunc string

func newVersion(t Terminal) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of wherry and its components",
		Example: `  wherry version
  wherry version -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionsNow()
			switch output {
			case "":
				fmt.Fprintf(t.Out,
					"wherry      %s\nKubernetes  %s\ncontainerd  %s\nrunc        %s\netcd        %s\nGo          %s %s\n", v.Wherry, v.Kubernetes, v.Containerd, v.Runc, v.Etcd, v.Go, v.Platform)
				return nil
			default:
				return printAs(t, output, v)
			}
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func versionsNow() versions {
	v := versions{
		Wherry:     server.Version(),
		Kubernetes: version.Get().GitVersion,
		Runc:       bundledRunc,
		Go:         runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/containerd/containerd/v2":
			v.Containerd = m.Version
		case "go.etcd.io/etcd/server/v3":
			v.Etcd = m.Version
		}
	}
	return v
}

// format is a flag's value: json or yaml, which is said before anything else is done.
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

// printAs prints v as json or yaml.
func printAs(t Terminal, format string, v any) error {
	var text []byte
	var err error
	switch strings.ToLower(format) {
	case "json":
		text, err = json.MarshalIndent(v, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(v)
	default:
		return &Exit{exitUsage, fmt.Errorf("-o %s: use json or yaml", format)}
	}
	if err != nil {
		return err
	}
	_, err = t.Out.Write(text)
	return err
}
