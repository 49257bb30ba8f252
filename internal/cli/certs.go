// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/server"
)

// certItems is what -o json and yaml show.
type certItems struct {
	Items []pki.Item `json:"items"`
}

func newCerts(t Terminal) *cobra.Command {
	var dir, output string
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "List certificates and keys and when they expire; rotate them",
		Long: `List the certificates and keys in a data folder and when they expire; if the server is running, also those that it and its nodes present.

A running server renews its own certificates, its nodes' and the administrator's kubeconfig before they expire. The CA that signs them
is valid for ten years and is renewed by hand: wherry certs rotate.

Exit codes: 1 failure, 2 incorrect usage.`,
		Example: `  sudo wherry certs
  sudo wherry certs -o json | jq '.items[] | select(.ends < "2031")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			items, err := pki.Inventory(abs)
			if err != nil {
				return err
			}
			if len(items) == 0 {
				return fmt.Errorf("no certificates in %s: no server or agent has been started with this data folder",
					abs)
			}
			items = append(items, shownCerts(cmd.Context(), t, abs)...)
			if output != "" {
				return cmdline.PrintAs(t, output, certItems{items})
			}
			return printCerts(t, items, time.Now())
		},
	}
	cmdline.DataDirFlag(cmd, &dir)
	cmdline.OutputFlag(cmd, &output)
	cmd.AddCommand(newCertsRotate(t))
	return cmd
}

func printCerts(t Terminal, items []pki.Item, now time.Time) error {
	table := cmdline.Table{Head: []string{"NAME", "SUBJECT", "ENDS", "LEFT", "RENEWAL", "WHERE"}}
	for _, i := range items {
		ends, left := "never", ""
		if i.Ends != nil {
			ends, left = i.Ends.Format(time.RFC3339), duration.HumanDuration(i.Ends.Sub(now))
			if !now.Before(*i.Ends) {
				left = "ENDED"
			}
		}
		table.Add(i.Name, i.Subject, ends, left, i.Renewal, i.Where)
	}
	return table.Print(t)
}

// shownCerts are those that a running server and its nodes show to who connects; it keeps them in memory only.
func shownCerts(ctx context.Context, t Terminal, dir string) (items []pki.Item) {
	if !server.Locked(dir) {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", datadir.Kubeconfig(dir))
	if err != nil {
		return nil // an agent's folder
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	look := func(name string, addresses ...string) {
		var errs []error
		for _, address := range addresses {
			item, err := shownAt(ctx, name, address)
			if err == nil {
				items = append(items, item)
				return
			}
			errs = append(errs, err)
		}
		fmt.Fprintf(t.Err, "cannot get the certificate of %s: %v\n", name, errors.Join(errs...))
	}
	if u, err := url.Parse(config.Host); err == nil {
		look("API server", u.Host)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return items
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(t.Err, "cannot list the nodes: %v\n", err)
		return items
	}
	for _, n := range nodes.Items {
		if addresses := kubeletAddresses(&n); len(addresses) > 0 {
			look("node "+n.Name, addresses...)
		}
	}
	return items
}

// kubeletAddresses are where a node's API may be: at the node's address, or, if that is this machine's, on loopback,
// where it is kept from others.
func kubeletAddresses(n *corev1.Node) (at []string) {
	port := strconv.Itoa(int(n.Status.DaemonEndpoints.KubeletEndpoint.Port))
	for _, a := range n.Status.Addresses {
		if a.Type != corev1.NodeInternalIP || port == "0" {
			continue
		}
		at = append(at, net.JoinHostPort(a.Address, port))
		if ofThisMachine(a.Address) {
			at = append(at, net.JoinHostPort("127.0.0.1", port))
		}
	}
	return at
}

func ofThisMachine(address string) bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(net.ParseIP(address))
	})
}

// shownAt makes a handshake to read the certificate; nothing is sent that would need trust.
func shownAt(ctx context.Context, name, address string) (pki.Item, error) {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // only looked at
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return pki.Item{}, err
	}
	defer conn.Close()
	c, ok := conn.(*tls.Conn)
	if !ok || len(c.ConnectionState().PeerCertificates) == 0 {
		return pki.Item{}, errors.New("it presents none")
	}
	return pki.Describe(name, address, "by the running server or agent", c.ConnectionState().PeerCertificates[0]), nil
}

func newCertsRotate(t Terminal) *cobra.Command {
	var dir string
	var finish bool
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the CA and the key for service account tokens",
		Long: `Replace a data folder's CA and its key for service account tokens, in two steps. The server must be stopped; pods keep running.

  1. wherry certs rotate           creates new ones. Everything signed by the old ones stays valid, and clients that know only the
                                   old CA still accept the server. Start the server again: pods get the new CA and new tokens
                                   within an hour, and kubeconfigs written from then on contain both CAs.
  2. wherry certs rotate --finish  ends that: kubeconfigs, agents and tokens from before the first step are rejected. Stop the server for
                                   it when all users have new kubeconfigs (wherry kubeconfig) and all agents have joined again.

Both steps rewrite the administrator's kubeconfig in the data folder.

Exit codes: 1 failure, 2 incorrect usage, 10 not root, 12 the server is running, 15 not the data folder of a server.`,
		Example: `  sudo wherry certs rotate
  sudo wherry certs rotate --finish`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			changed, err := server.RotateCertificates(abs, finish)
			switch {
			case errors.Is(err, pki.ErrRotating):
				return errors.New("the last rotation is not finished: finish it with wherry certs rotate --finish, then rotate again")
			case err != nil:
				return err
			case !changed:
				fmt.Fprintln(t.Err, "nothing to finish: no rotation is in progress")
			case finish:
				fmt.Fprintln(t.Err,
					"finished: from the server's next start on, anything signed by the old CA and key is rejected")
			default:
				fmt.Fprintln(t.Err,
					"rotated: start the server; anything signed by the old CA and key stays valid until wherry certs rotate --finish")
			}
			return nil
		},
	}
	cmdline.DataDirFlag(cmd, &dir)
	cmd.Flags().BoolVar(&finish, "finish", false, "end the period in which both are valid")
	return cmd
}
