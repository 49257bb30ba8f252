// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/serverkind"
)

// asKubectl debugs a pod of a cluster that is not Wherry's in the way of kubectl debug, and says so (DA-10). What that
// way cannot do is refused before anything is done.
func (f *debugFlags) asKubectl(ctx context.Context, t cmdline.Terminal, kubectl func(args ...string) int,
	why error, pod string, command []string) error {
	toolbox := f.Image == "" || podspec.IsToolbox(f.Image)
	switch {
	case toolbox && !f.onOurNode(ctx, pod):
		return fmt.Errorf("%w\nonly Wherry's nodes have the built-in toolbox: name an image with -m, for example -m busybox:1.37, to debug as kubectl debug does",
			why)
	case f.User != "" || f.TTL != 0 || f.Remove:
		return cmdline.ExitWith(cmdline.ExitUsage,
			fmt.Errorf("%w\n--user, --ttl and --rm need Wherry's: leave them out for this cluster", why))
	}
	if toolbox {
		f.Image = debugask.ToolboxImage
	}
	if !f.Quiet { // in scripts too: the pod keeps what is added
		fmt.Fprintln(t.Err,
			fallback(why)+": debugging as kubectl debug does, with an ephemeral container that stays in the pod")
	}
	return cmdline.ExitWith(kubectl(f.kubectlArgs(pod, command)...), nil)
}

// fallback is why a pod is debugged in the way of kubectl.
func fallback(why error) string {
	if reach.NoAgent(why) {
		return plain.Text(why.Error())
	}
	return "this cluster's API server is not Wherry's, and its debugging (wherry cluster install) is not there"
}

// onOurNode reports whether a pod runs on a node of Wherry's, which has the toolbox in whosever cluster it is (DC-01).
// Where that cannot be known, for want of rights too, it does not.
func (f *debugFlags) onOurNode(ctx context.Context, name string) bool {
	c, err := f.Connect()
	if err != nil {
		return false
	}
	pod, err := c.CoreV1().Pods(f.Namespace).Get(ctx, reach.PodName(name), metav1.GetOptions{})
	if err != nil {
		return false
	}
	node, err := c.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	return err == nil && isOurs(node)
}

// isOurs reports whether a node is one of Wherry's.
func isOurs(node *corev1.Node) bool {
	return strings.Contains(node.Status.NodeInfo.KubeletVersion, serverkind.Mark)
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
