// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
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
		Short: "Check which connections network policies allow",
		Long:  "Check which connections between pods, services and addresses network policies allow.",
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
		Short: "Show whether network policies allow a connection, and which ones",
		Long: `Show whether network policies allow a connection, and which of them decide. FROM and TO are pods, as POD, NAMESPACE/POD or pod/POD, or
addresses; TO may also be a service, as svc/SERVICE or svc/NAMESPACE/SERVICE or by its address. PORT is a number or the name of one of TO's
ports, and may be left out for a service (by name) that has only one; PROTOCOL is tcp, udp or sctp.

A pod's own node can always reach it, whatever is printed here for the node's address. Policies apply to the pods behind a service, not to
its address: for a service, each of its serving endpoints is checked, with the endpoint's port.`,
		Example: "  wherry network allowed web db:5432\n  wherry network allowed web svc/db:5432\n" +
			"  wherry network allowed shop/web [fd00::7]:443\n" +
			"  wherry network allowed web kube-system/resolver:dns/udp -o json",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := parse(args[0], args[1])
			if err != nil {
				return cmdline.WrongUse(cmd, err.Error())
			}
			client, err := f.Connect()
			if err != nil {
				return err
			}
			got, err := gather(cmd.Context(), client, q)
			if err != nil {
				return err
			}
			all, err := judgeAll(q, got, f.Namespace)
			if err != nil {
				return err
			}
			return f.print(t, all)
		},
	}
	f.AddTo(cmd)
	cmdline.OutputFlag(cmd, &f.output)
	return cmd
}

// print says the answers. In a structured form those about a service are a list, also of one.
func (f *allowedFlags) print(t cmdline.Terminal, all []Answer) error {
	if f.output == "" || f.output == "table" {
		for _, a := range all {
			if _, err := fmt.Fprint(t.Out, a.text()); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 1 && all[0].Service == "" {
		return cmdline.PrintAs(t, f.output, all[0])
	}
	return cmdline.PrintAs(t, f.output, map[string]any{"service": all[0].Service, "endpoints": all})
}

// complete completes FROM by pods, and TO by pods and services.
func (f *allowedFlags) complete(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	switch len(args) {
	case 0:
		return f.CompletePods(cmd, nil, prefix)
	case 1:
	default:
		return nil, none
	}
	names, _ := f.CompletePods(cmd, nil, prefix)
	client, err := f.Connect()
	if err != nil {
		return names, none | cobra.ShellCompDirectiveNoSpace
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	services, err := client.CoreV1().Services(f.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return names, none | cobra.ShellCompDirectiveNoSpace
	}
	for _, s := range services.Items {
		for _, p := range s.Spec.Ports {
			text := fmt.Sprintf("svc/%s:%d/%s", s.Name, p.Port, strings.ToLower(string(p.Protocol)))
			if strings.HasPrefix(text, prefix) {
				names = append(names, text)
			}
		}
	}
	return names, none | cobra.ShellCompDirectiveNoSpace
}

// completionPatience is how long a shell waits for names.
const completionPatience = 2 * time.Second

// gather reads all that policies look at.
func gather(ctx context.Context, c kubernetes.Interface, q question) (f found, err error) {
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
	if err := f.gatherServices(ctx, c, q); err != nil {
		return f, err
	}
	names, err := c.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, "kube-dns", metav1.GetOptions{})
	if err == nil && len(names.Spec.Selector) == 0 {
		f.names = names
	} else if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return f, err
	}
	return f, nil
}

// gatherServices reads the services and what is behind them, if the question may be about one. Who asks about an
// address need not be allowed to read services.
func (f *found) gatherServices(ctx context.Context, c kubernetes.Interface, q question) error {
	if _, err := netip.ParseAddr(q.to); err != nil && q.toKind != aService {
		return nil
	}
	services, err := c.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	var behind *discoveryv1.EndpointSliceList
	if err == nil {
		behind, err = c.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{})
	}
	if apierrors.IsForbidden(err) && q.toKind != aService {
		return nil
	}
	if err != nil {
		return err
	}
	f.services, f.slices = services.Items, behind.Items
	return nil
}

// found is what the API server has.
type found struct {
	services   []corev1.Service // these two only for a question that may be about one
	slices     []discoveryv1.EndpointSlice
	policies   []networkPolicy
	pods       []corev1.Pod
	namespaces []corev1.Namespace
	names      *corev1.Service // of the server's own resolver; nil: names are answered by pods, or it is not known
}
