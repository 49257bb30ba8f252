// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/podspec"
)

// asKubectl debugs a pod of a cluster that is not Wherry's in the way of kubectl debug, and says so (DA-10). What that
// way cannot do is refused before anything is done.
func (f *debugFlags) asKubectl(t cmdline.Terminal, kubectl func(args ...string) int, why *reach.Foreign, pod string,
	command []string) error {
	switch {
	case f.Image == "" || podspec.IsToolbox(f.Image):
		return fmt.Errorf("%w\nthe built-in toolbox is on Wherry's nodes only: name an image with -m, for example -m busybox:1.37, and it is done as kubectl debug does it",
			why)
	case f.User != "" || f.TTL != 0 || f.Remove:
		return cmdline.ExitWith(cmdline.ExitUsage,
			fmt.Errorf("%w\n--user, --ttl and --rm need Wherry's: leave them out for this cluster", why))
	}
	f.say(t,
		"this cluster's API server is not Wherry's: this is done as kubectl debug does it, by an ephemeral container that stays in the pod")
	return cmdline.ExitWith(kubectl(f.kubectlArgs(pod, command)...), nil)
}

// kubectlArgs are those of the kubectl debug that does the same.
func (f *debugFlags) kubectlArgs(pod string, command []string) []string {
	args := []string{"debug", pod, "--image", f.Image, "--stdin"}
	for _, flag := range []struct{ name, value string }{{"--kubeconfig", f.Kubeconfig}, {"--context", f.Context},
		{"--namespace", f.Namespace}, {"--container", f.Container}, {"--target", f.Target}, {"--profile", f.Profile}} {
		switch {
		case flag.value != "":
			args = append(args, flag.name, flag.value)
		case flag.name == "--profile": // without it, kubectl takes its oldest one
			args = append(args, flag.name, "general")
		}
	}
	if f.TTY {
		args = append(args, "--tty")
	}
	if f.Quiet {
		args = append(args, "--quiet")
	}
	if len(command) > 0 {
		args = append(append(args, "--"), command...)
	}
	return args
}
