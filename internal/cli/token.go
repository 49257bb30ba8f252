// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/pki"
)

func newToken(t Terminal) *cobra.Command {
	f := &reach.Flags{}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage the tokens with which agents join",
		Long: `Create, list and remove bootstrap tokens, with which agents on other machines join this server (wherry agent
--bootstrap-kubeconfig). They are Secrets in the namespace kube-system, like kubeadm's.`,
		Args: cmdline.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f.AddServerTo(cmd)
	cmd.AddCommand(newTokenCreate(t, f), newTokenList(t, f), newTokenDelete(t, f))
	return cmd
}

// tokenFlags are the flags of `wherry token create`.
type tokenFlags struct {
	*reach.Flags
	ttl         time.Duration
	description string
	groups      []string
	join        bool
	server      string
}

func newTokenCreate(t Terminal, client *reach.Flags) *cobra.Command {
	f := &tokenFlags{Flags: client}
	cmd := &cobra.Command{
		Use:   "create [TOKEN]",
		Short: "Create a token",
		Long: `Create a bootstrap token and print it. Until it expires, anyone who has it can join as a node, under any name.

With --print-join-command the output is the command for the other machine, which must be able to reach the server (--bind-address).

Exit codes: 1 failure, 2 wrong command line.`,
		Example: `  wherry token create --ttl 1h --print-join-command
  wherry token create --description "rack 4"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.create(cmd.Context(), t, args) },
	}
	fl := cmd.Flags()
	fl.DurationVar(&f.ttl, "ttl", 24*time.Hour, "how long it is valid; 0 for no limit")
	fl.StringVar(&f.description, "description", "", "what it is for")
	fl.StringSliceVar(&f.groups, "groups", nil,
		"additional groups for agents that use it; each must start with system:bootstrappers:")
	fl.BoolVar(&f.join, "print-join-command", false, "print the command that joins another machine with it")
	fl.StringVar(&f.server, "server", "",
		"with --print-join-command: URL of this server for the other machine; default: its own address")
	return cmd
}

// check refuses what makes no sense; it returns the token, a new one unless one was given.
func (f *tokenFlags) check(args []string) (string, error) {
	for _, group := range f.groups {
		if err := bootstraputil.ValidateBootstrapGroupName(group); err != nil {
			return "", cmdline.ExitWith(exitUsage, fmt.Errorf("--groups: %w", err))
		}
	}
	switch {
	case f.ttl < 0:
		return "", cmdline.ExitWith(exitUsage, errors.New("--ttl must not be negative"))
	case f.server != "" && !f.join:
		return "", cmdline.ExitWith(exitUsage, errors.New("--server only works with --print-join-command"))
	case len(args) == 0:
		return bootstraputil.GenerateBootstrapToken()
	case !bootstraputil.IsValidBootstrapToken(args[0]):
		return "",
			cmdline.ExitWith(exitUsage,
				errors.New("a token is 6 characters, a dot, and 16 characters, all of them lower-case letters or digits; leave it out to have one made"))

	}
	return args[0], nil
}

func (f *tokenFlags) create(ctx context.Context, t Terminal, args []string) error {
	token, err := f.check(args)
	if err != nil {
		return err
	}
	c, err := f.Connect()
	if err != nil {
		return err
	}
	address := f.server
	if f.join && address == "" {
		if address, err = reachable(ctx, c); err != nil {
			return err
		}
	}
	id, secret, _ := strings.Cut(token, ".")
	data := map[string]string{
		bootstrapapi.BootstrapTokenIDKey: id, bootstrapapi.BootstrapTokenSecretKey: secret,
		bootstrapapi.BootstrapTokenUsageAuthentication: "true",
	}
	if f.ttl > 0 {
		data[bootstrapapi.BootstrapTokenExpirationKey] = time.Now().Add(f.ttl).UTC().Format(time.RFC3339)
	}
	if f.description != "" {
		data[bootstrapapi.BootstrapTokenDescriptionKey] = f.description
	}
	if len(f.groups) > 0 {
		data[bootstrapapi.BootstrapTokenExtraGroupsKey] = strings.Join(f.groups, ",")
	}
	_, err = c.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: bootstraputil.BootstrapTokenSecretName(id)},
		Type:       bootstrapapi.SecretTypeBootstrapToken, StringData: data,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("there is a token with the ID %s already", id)
	}
	if err != nil {
		return err
	}
	if !f.join {
		fmt.Fprintln(t.Out, token)
		return nil
	}
	if err := rest.LoadTLSFiles(c.Config); err != nil {
		return err
	}
	kubeconfig, err := pki.WriteKubeconfig(address, c.Config.CAData, bootstrapapi.BootstrapUserPrefix+id,
		&clientcmdapi.AuthInfo{Token: token})
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out,
		"(umask 077; echo %s | base64 -d > wherry-bootstrap.yaml) && sudo wherry agent --bootstrap-kubeconfig wherry-bootstrap.yaml --rotate-server-certificates\n", base64.StdEncoding.EncodeToString(kubeconfig))
	return nil
}

// answersWithin is how long a server on this machine may take to accept a connection.
const answersWithin = 2 * time.Second

// reachable is the URL of the server for other machines: the endpoint of the service kubernetes.
func reachable(ctx context.Context, c *reach.Client) (string, error) {
	slices, err := c.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return "", err
	}
	for _, s := range slices.Items {
		if len(s.Endpoints) > 0 && len(s.Endpoints[0].Addresses) > 0 && len(s.Ports) > 0 && s.Ports[0].Port != nil {
			address := net.JoinHostPort(s.Endpoints[0].Addresses[0], strconv.Itoa(int(*s.Ports[0].Port)))
			// Pods are led there also if the server listens on loopback alone: others are not.
			conn, err := (&net.Dialer{Timeout: answersWithin}).DialContext(ctx, "tcp", address)
			if err != nil {
				continue
			}
			conn.Close()
			return "https://" + address, nil
		}
	}
	return "",
		errors.New("the server listens on this machine's loopback address only, where no other machine reaches it: start it with --bind-address 0.0.0.0, or give --server")
}

// tokenItem is a token as a person may see it: without its secret.
type tokenItem struct {
	ID          string     `json:"id"`
	Ends        *time.Time `json:"ends,omitempty"`
	Groups      []string   `json:"groups,omitempty"`
	Description string     `json:"description,omitempty"`
}

func newTokenList(t Terminal, f *reach.Flags) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens by their IDs",
		Long: `List bootstrap tokens by their IDs, the part before the dot. The rest of a token is shown only when it is created.

Exit codes: 1 failure, 2 wrong command line.`,
		Example: "  wherry token list\n  wherry token list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.Connect()
			if err != nil {
				return err
			}
			list, err := c.CoreV1().Secrets(metav1.NamespaceSystem).List(cmd.Context(), metav1.ListOptions{
				FieldSelector: fields.OneTermEqualSelector("type",
					string(bootstrapapi.SecretTypeBootstrapToken)).String(),
			})
			if err != nil {
				return err
			}
			items := []tokenItem{}
			for i := range list.Items {
				items = append(items, describeToken(&list.Items[i]))
			}
			slices.SortFunc(items, func(a, b tokenItem) int { return strings.Compare(a.ID, b.ID) })
			if output != "" {
				return cmdline.PrintAs(t, output, struct {
					Items []tokenItem `json:"items"`
				}{items})
			}
			return printTokens(t, items, time.Now())
		},
	}
	cmdline.OutputFlag(cmd, &output)
	return cmd
}

func describeToken(s *corev1.Secret) tokenItem {
	item := tokenItem{ID: string(s.Data[bootstrapapi.BootstrapTokenIDKey]),
		Description: string(s.Data[bootstrapapi.BootstrapTokenDescriptionKey])}
	if end, err := time.Parse(time.RFC3339, string(s.Data[bootstrapapi.BootstrapTokenExpirationKey])); err == nil {
		item.Ends = &end
	}
	if groups := string(s.Data[bootstrapapi.BootstrapTokenExtraGroupsKey]); groups != "" {
		item.Groups = strings.Split(groups, ",")
	}
	return item
}

func printTokens(t Terminal, items []tokenItem, now time.Time) error {
	table := cmdline.Table{Head: []string{"ID", "LEFT", "ENDS", "GROUPS", "DESCRIPTION"}, None: "No tokens found."}
	for _, i := range items {
		left, ends := "", "never"
		if i.Ends != nil {
			left, ends = duration.HumanDuration(i.Ends.Sub(now)), i.Ends.Format(time.RFC3339)
		}
		table.Add(i.ID, left, ends, strings.Join(i.Groups, ","), i.Description)
	}
	return table.Print(t)
}

func newTokenDelete(t Terminal, f *reach.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "delete TOKEN...",
		Short: "Remove tokens, by ID or whole",
		Long: `Remove bootstrap tokens. Nodes that have joined with them are not affected.

Exit codes: 1 failure, 2 wrong command line.`,
		Example: "  wherry token delete abcdef",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []string
			for _, arg := range args {
				id, _, _ := strings.Cut(arg, ".")
				if !bootstraputil.IsValidBootstrapTokenID(id) {
					return cmdline.ExitWith(exitUsage,
						fmt.Errorf("%q is not a token ID: it has 6 lower-case letters or digits, as shown by wherry token list", id))

				}
				ids = append(ids, id)
			}
			c, err := f.Connect()
			if err != nil {
				return err
			}
			var errs []error
			for _, id := range ids {
				err := c.CoreV1().Secrets(metav1.NamespaceSystem).Delete(cmd.Context(),
					bootstraputil.BootstrapTokenSecretName(id), metav1.DeleteOptions{})
				if apierrors.IsNotFound(err) {
					err = fmt.Errorf("there is no token with the ID %s", id)
				}
				if errs = append(errs, err); err == nil {
					fmt.Fprintf(t.Err, "token %s is removed\n", id)
				}
			}
			return errors.Join(errs...)
		},
	}
}
