// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/release"
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
				return cmdline.PrintAs(t, output, v)
			}
		},
	}
	cmdline.OutputFlag(cmd, &output)
	return cmd
}

func versionsNow() versions {
	v := versions{
		Wherry:     release.Version(),
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
