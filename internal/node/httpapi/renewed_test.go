// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
)

// Identity: a certificate that is renewed is shown from the next connection on.
func TestRenewedCertificate(t *testing.T) {
	var now atomic.Pointer[tls.Certificate]
	w := newWorld(t, func(c *Config) {
		c.Certificate = tls.Certificate{}
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return now.Load(), nil }
	})
	for range 2 {
		cert, key, err := w.ca.Serving([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		now.Store(&pair)
		conn, err := tls.Dial("tcp", w.addr, &tls.Config{RootCAs: w.ca.Pool()})
		if err != nil {
			t.Fatal(err)
		}
		if shown := conn.ConnectionState().PeerCertificates[0]; !shown.Equal(pair.Leaf) {
			t.Errorf("shown is %v", shown.SerialNumber)
		}
		conn.Close()
	}
}
