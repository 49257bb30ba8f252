// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/tls"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/pki"
)

// servingCert gives the library the certificate the server shows, and again when it is renewed.
type servingCert struct{ *pki.Renewing }

var (
	_ dynamiccertificates.CertKeyContentProvider = servingCert{}
	_ dynamiccertificates.ControllerRunner       = servingCert{}
)

// Name implements dynamiccertificates.CertKeyContentProvider.
func (servingCert) Name() string { return "serving" }

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (c servingCert) CurrentCertKeyContent() (cert, key []byte) { return c.PEM() }

// AddListener implements dynamiccertificates.Notifier.
func (c servingCert) AddListener(l dynamiccertificates.Listener) { c.OnRenewal(l.Enqueue) }

// RunOnce implements dynamiccertificates.ControllerRunner; the first certificate is there from the beginning.
func (servingCert) RunOnce(context.Context) error { return nil }

// Run implements dynamiccertificates.ControllerRunner.
func (c servingCert) Run(ctx context.Context, _ int) { c.Renewing.Run(ctx) }

func (s *Server) newServingCert() (servingCert, error) {
	r, err := pki.NewRenewing("API server", s.log, func() ([]byte, []byte, error) {
		s.warnOfCA()
		names, ips := s.cfg.certNames(s.data.addresses.First()) // the machine's addresses may have changed
		return s.who.ca.ServingFor(names, ips, s.cfg.CertLifetime)
	})
	return servingCert{r}, err
}

// caWarning is how long before its end the CA is complained about, at every start and renewal: those come the more
// often the nearer it is, since no certificate outlives it.
const caWarning = 180 * 24 * time.Hour

func (s *Server) warnOfCA() {
	end := s.who.ca.NotAfter()
	switch left := time.Until(end); {
	case left <= 0:
		s.log.Error("the CA has expired and nobody can connect: stop the server, run wherry certs rotate, and start it again", "ended", end)
	case left < caWarning:
		s.log.Warn("the CA will expire, and every certificate with it: rotate it in time with wherry certs rotate",
			"ends", end)
	}
}

// newKubeletTLS is how the server shows itself to the nodes' HTTPS APIs: s.who.kubeletCert, which is renewed while the
// server runs.
func (s *Server) newKubeletTLS() (_ *tls.Config, err error) {
	s.who.kubeletCert, err = pki.NewRenewing("client of nodes", s.log, func() ([]byte, []byte, error) {
		// its rights are those of role system:kubelet-api-admin
		return s.who.ca.Client(authn.ServerUser, nil, s.cfg.CertLifetime)
	})
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.who.ca.Pool(),
		GetClientCertificate: s.who.kubeletCert.ClientSide}, nil
}
