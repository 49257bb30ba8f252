// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"

	"github.com/wherryproject/wherry/internal/pki"
)

// Config says who the agent is and where its credentials lie.
type Config struct {
	NodeName   string
	Kubeconfig string // the agent's; written when it joins
	Bootstrap  string // kubeconfig to ask for the first certificate with; empty: Kubeconfig must be good
	Dir        string // of certificates and keys
	Logger     *slog.Logger
}

const (
	clientPrefix  = "agent-client"
	servingPrefix = "agent-serving"
)

// Client keeps the certificate by which the agent is known to the API server. Close ends it.
type Client struct {
	manager certificate.Manager
}

// Close ends the renewing. A nil Client has none.
func (c *Client) Close() {
	if c != nil {
		c.manager.Stop()
	}
}

// Join makes sure that the agent's kubeconfig can be used, and waits until it can: when it is not there or its
// certificate has ended, it asks for a certificate with the bootstrap kubeconfig. From then on the certificate is
// renewed before it ends, if it was got in this way; a kubeconfig that somebody else has made is left alone, and the
// Client is nil.
func Join(ctx context.Context, c Config) (*Client, error) {
	store, err := newStore(clientPrefix, c)
	if err != nil {
		return nil, err
	}
	state, err := look(c.Kubeconfig, store.CurrentPath(), time.Now())
	switch {
	case err != nil:
		return nil, err
	case state == foreign:
		return nil, nil
	case state != good && c.Bootstrap == "":
		return nil,
			fmt.Errorf("--kubeconfig %s %s: give --bootstrap-kubeconfig to request a new one (wherry token create makes it), or another --kubeconfig", c.Kubeconfig, state)
	}
	if state != good {
		// Who joins again wants a new certificate: the one there is may be of a CA that is about to go.
		if err := store.forget(); err != nil {
			return nil, err
		}
	}
	manager, err := c.clientManager(store)
	if err != nil {
		return nil, err
	}
	client := &Client{manager}
	if state == good {
		manager.Start()
		return client, nil
	}
	if err := c.firstTime(ctx, manager, store); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// firstTime gets a certificate with the bootstrap kubeconfig and writes the agent's own.
func (c Config) firstTime(ctx context.Context, manager certificate.Manager, store *notifyingStore) error {
	bootstrap, err := clientcmd.BuildConfigFromFlags("", c.Bootstrap)
	if err != nil {
		return fmt.Errorf("--bootstrap-kubeconfig: %w", err)
	}
	if bootstrap.Insecure {
		return errors.New("--bootstrap-kubeconfig: it does not verify the API server's certificate, so anyone could impersonate the server; add the certificate-authority")
	}
	if err := c.accepted(ctx, bootstrap); err != nil {
		return err
	}
	manager.Start()
	if manager.Current() == nil {
		c.Logger.Info("requested a certificate; waiting for it to be signed (see kubectl get csr)", "server",
			bootstrap.Host, "node", c.NodeName)
		select {
		case <-store.updated:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := rest.LoadTLSFiles(bootstrap); err != nil {
		return fmt.Errorf("--bootstrap-kubeconfig: %w", err)
	}
	text, err := pki.WriteKubeconfig(bootstrap.Host, bootstrap.CAData, "system:node:"+c.NodeName,
		&clientcmdapi.AuthInfo{ClientCertificate: store.CurrentPath(), ClientKey: store.CurrentPath()})
	if err != nil {
		return err
	}
	if err := pki.WriteFile(c.Kubeconfig, text, 0o600); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	c.Logger.Info("joined", "server", bootstrap.Host, "node", c.NodeName, "kubeconfig", c.Kubeconfig)
	return nil
}

// accepted asks the server whether it takes the bootstrap credentials: the manager would try refused ones for ever.
func (c Config) accepted(ctx context.Context, bootstrap *rest.Config) error {
	client, err := kubernetes.NewForConfig(bootstrap)
	if err != nil {
		return fmt.Errorf("--bootstrap-kubeconfig: %w", err)
	}
	_, err = client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("--bootstrap-kubeconfig: %s does not accept its token, which may have expired: create another with wherry token create", bootstrap.Host)
	}
	return nil // the manager logs whatever else goes wrong, and tries again
}

func (c Config) clientManager(store certificate.Store) (certificate.Manager, error) {
	ctx := klog.NewContext(context.Background(), logr.FromSlogHandler(c.Logger.Handler()))
	return certificate.NewManager(&certificate.Config{
		Ctx:  &ctx,
		Name: "agent",
		ClientsetFn: func(current *tls.Certificate) (kubernetes.Interface, error) {
			from := c.Kubeconfig
			if current == nil {
				from = c.Bootstrap
			}
			config, err := clientcmd.BuildConfigFromFlags("", from)
			if err != nil {
				return nil, err
			}
			return kubernetes.NewForConfig(config)
		},
		Template: &x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "system:node:" + c.NodeName, Organization: []string{user.NodesGroup}},
		},
		SignerName:       certificatesv1.KubeAPIServerClientKubeletSignerName,
		GetUsages:        certificate.DefaultKubeletClientGetUsages,
		CertificateStore: store,
	})
}

// state is what a kubeconfig is worth.
type state string

const (
	good    state = "is good" // and its certificate is kept here
	foreign state = "belongs to another user"
	missing state = "does not exist"
	ended   state = "contains an expired certificate"
)

// look says what the agent's kubeconfig is worth; pair is the file of the certificate that is kept here.
func look(kubeconfig, pair string, now time.Time) (state, error) {
	if _, err := os.Stat(kubeconfig); errors.Is(err, fs.ErrNotExist) {
		return missing, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", fmt.Errorf("--kubeconfig: %w", err)
	}
	if config.CertFile != pair {
		return foreign, nil
	}
	certs, err := pki.ReadCertificates(pair)
	if errors.Is(err, fs.ErrNotExist) {
		return ended, nil
	}
	if err != nil {
		return "", fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	if !now.Before(certs[0].NotAfter) {
		return ended, nil
	}
	return good, nil
}
