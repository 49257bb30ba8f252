// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// Credentials are an agent's certificate, and those by whom its clients' are to be signed.
type Credentials struct {
	Certificate *tls.Certificate
	Clients     *x509.CertPool
	// Stranger is called for a client that would be the API if its certificate were of this authority: the authority
	// may be another by now. Anybody can be such a client. nil: nobody is notified.
	Stranger func()
}

// TLS is how an agent speaks: TLS 1.3, with clients who show the API's certificate. Credentials are asked for at each
// connection, so that they can be renewed; nil means that there are none yet.
func TLS(credentials func() *Credentials) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c := credentials()
			if c == nil {
				return nil, errors.New("the agent has no certificate yet")
			}
			return c.config(time.Now), nil
		},
	}
}

func (c *Credentials) config(now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{*c.Certificate},
		ClientCAs:    c.Clients,
		ClientAuth:   tls.RequireAnyClientCert, // it is looked at below, and only there
		Time:         now,
		NextProtos:   []string{"http/1.1"}, // WebSockets are of it
		// A session that is taken up again is not looked at as closely as a new one.
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			err := ofAPI(s.PeerCertificates, c.Clients, now())
			if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) && c.Stranger != nil {
				c.Stranger()
			}
			return err
		},
	}
}

// ofAPI refuses a client's certificate that is not of the authority, valid now, and that of the API, made for clients
// alone. (Pure.)
func ofAPI(chain []*x509.Certificate, authority *x509.CertPool, now time.Time) error {
	if len(chain) == 0 || authority == nil { // without one, all that the system trusts would be
		return errors.New("the client shows no certificate, or there is nobody to trust")
	}
	leaf := chain[0]
	if leaf.Subject.CommonName != wire.APIName {
		return fmt.Errorf("the client is %q: only %s is served", leaf.Subject.CommonName, wire.APIName)
	}
	clients := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if !slices.Equal(leaf.ExtKeyUsage, clients) || len(leaf.UnknownExtKeyUsage) > 0 {
		return errors.New("the client's certificate is not made for clients alone")
	}
	// What else the client has sent is no part of it: the authority signs for itself.
	_, err := leaf.Verify(x509.VerifyOptions{Roots: authority, Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: clients})
	return err
}
