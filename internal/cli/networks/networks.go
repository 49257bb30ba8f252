// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
)

// New returns wherry network.
func New(t cmdline.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Say who reaches whom",
		Long:  "Say who reaches whom: what network policies let pass.",
		Args:  cmdline.NoSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAllowed(t))
	return cmd
}

// allowedFlags are the flags of `wherry network allowed`.
type allowedFlags struct {
	reach.Flags
	output string
}

func newAllowed(t cmdline.Terminal) *cobra.Command {
	f := &allowedFlags{}
	cmd := &cobra.Command{
		Use:   "allowed FROM TO:PORT[/PROTOCOL]",
		Short: "Say whether network policies let a connection pass, and which",
		Long: `Say whether network policies let a connection pass, and which of them. FROM and TO are pods, as POD or NAMESPACE/POD, or addresses; PORT
is a number or the name of one of the pod's ports; PROTOCOL is tcp, udp or sctp.

A pod's own node always reaches it, whatever is said of its address here. Policies see the pods behind a Service, not its address.`,
		Example: "  wherry network allowed web db:5432\n  wherry network allowed shop/web [fd00::7]:443\n" +
			"  wherry network allowed web kube-system/resolver:dns/udp -o json",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := parse(args[0], args[1])
			if err != nil {
				return cmdline.WrongUse(cmd, err.Error())
			}
			client, err := f.Connect()
			if err != nil {
				return err
			}
			got, err := gather(cmd.Context(), client)
			if err != nil {
				return err
			}
			a, err := judge(q, got, f.Namespace)
			if err != nil {
				return err
			}
			if f.output != "" && f.output != "table" {
				return cmdline.PrintAs(t, f.output, a)
			}
			_, err = fmt.Fprint(t.Out, a.text())
			return err
		},
	}
	f.AddTo(cmd)
	cmdline.OutputFlag(cmd, &f.output)
	return cmd
}

// gather reads all that policies look at.
func gather(ctx context.Context, c kubernetes.Interface) (f found, err error) {
	policies, err := c.NetworkingV1().NetworkPolicies("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, err
	}
	pods, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, err
	}
	namespaces, err := c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, err
	}
	f.policies, f.pods, f.namespaces = policies.Items, pods.Items, namespaces.Items
	names, err := c.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, "kube-dns", metav1.GetOptions{})
	if err == nil && len(names.Spec.Selector) == 0 {
		f.names = names
	} else if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return f, err
	}
	return f, nil
}

// found is what the API server has.
type found struct {
	policies   []networkPolicy
	pods       []corev1.Pod
	namespaces []corev1.Namespace
	names      *corev1.Service // of the server's own resolver; nil: names are answered by pods, or it is not known
}
