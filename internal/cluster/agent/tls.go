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
		ClientAuth:   tls.RequireAndVerifyClientCert,
		Time:         now,
		NextProtos:   []string{"http/1.1"}, // WebSockets are of it
		// A session that is taken up again is not looked at as closely as a new one.
		SessionTicketsDisabled: true,
		VerifyConnection:       func(s tls.ConnectionState) error { return ofAPI(s.PeerCertificates) },
	}
}

// ofAPI refuses a client's certificate, which is known to be the authority's and valid now, if it is not that of the
// API, made for clients alone. (Pure.)
func ofAPI(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("the client shows no certificate")
	}
	leaf := chain[0]
	if leaf.Subject.CommonName != wire.APIName {
		return fmt.Errorf("the client is %q: only %s is served", leaf.Subject.CommonName, wire.APIName)
	}
	if !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || len(leaf.UnknownExtKeyUsage) > 0 {
		return errors.New("the client's certificate is not made for clients alone")
	}
	return nil
}
