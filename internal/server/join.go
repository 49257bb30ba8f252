// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/node/credentials"
	"github.com/wherryproject/wherry/internal/pki"
)

// cluster is the API that the agent works for.
type cluster struct {
	url       string
	config    *rest.Config   // as the agent, not as anybody else
	clientCAs *x509.CertPool // whose certificates may use the node's own API
	serving   *pki.CA        // signs the certificate that the node's own API shows
}

// join connects to somebody else's API server.
func (s *Server) join(ctx context.Context) (err error) {
	o := s.opts
	if s.parts.identity, err = credentials.Join(ctx, s.credentials()); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Join)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	own, err := pki.LoadOrCreate(filepath.Join(o.DataDir, "pki"), "wherry-agent")
	if err != nil {
		return err
	}
	cas, err := clientCAs(o.ClientCAFile, config)
	if err != nil {
		return err
	}
	s.parts.cluster = cluster{url: config.Host, config: config, clientCAs: cas, serving: own}
	return nil
}

func (s *Server) leave(context.Context) error {
	s.parts.identity.Close()
	return nil
}

// clientCAs are whose certificates may use the node's own API: by default the CA that signed the API server's, as most
// clusters have one CA for both.
func clientCAs(file string, config *rest.Config) (*x509.CertPool, error) {
	config = rest.CopyConfig(config) // whose own names files, which are read again when they change
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	text, from := config.CAData, "the kubeconfig's certificate-authority"
	if file != "" {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		from = "--client-ca-file " + file
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil,
			fmt.Errorf("%s contains no certificate; the agent needs one to verify the API server: use --client-ca-file",
				from)
	}
	return pool, nil
}
