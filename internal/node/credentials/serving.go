// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"
)

// Getter is the function of a tls.Config that finds the certificate to show.
type Getter func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Serving keeps the certificate that the agent's own API shows, signed by the API server's CA once somebody has
// approved it. Close ends it.
type Serving struct {
	manager  certificate.Manager
	meantime Getter
}

// NewServing asks for the certificate at once, in the background, and again before it ends; until there is one,
// meantime's is shown.
func NewServing(c Config, config *rest.Config, ips []net.IP, meantime Getter) (*Serving, error) {
	store, err := newStore(servingPrefix, c)
	if err != nil {
		return nil, err
	}
	ctx := klog.NewContext(context.Background(), logr.FromSlogHandler(c.Logger.Handler()))
	manager, err := certificate.NewManager(&certificate.Config{
		Ctx:         &ctx,
		Name:        "agent API",
		ClientsetFn: func(*tls.Certificate) (kubernetes.Interface, error) { return kubernetes.NewForConfig(config) },
		Template: &x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "system:node:" + c.NodeName, Organization: []string{user.NodesGroup}},
			DNSNames: []string{c.NodeName}, IPAddresses: ips,
		},
		SignerName:       certificatesv1.KubeletServingSignerName,
		GetUsages:        certificate.DefaultKubeletServingGetUsages,
		CertificateStore: store,
	})
	if err != nil {
		return nil, err
	}
	if manager.Current() == nil {
		c.Logger.Info("requesting the serving certificate of the node's API; approve it with kubectl certificate approve (see kubectl get csr)", "node", c.NodeName)
	}
	manager.Start()
	return &Serving{manager: manager, meantime: meantime}, nil
}

// Get finds the certificate to show.
func (s *Serving) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := s.manager.Current(); pair != nil {
		return pair, nil
	}
	return s.meantime(hello)
}

// Close ends the renewing.
func (s *Serving) Close() { s.manager.Stop() }
