// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// openssl has those of openssl's commands that look at something.
func openssl(c *applet.Call) error {
	command := ""
	if len(c.Args) > 0 {
		command = c.Args[0]
	}
	switch command {
	case "s_client", "x509":
		c.Name, c.Usage, c.Args = "openssl "+command, "", doubled(c.Args[1:])
		if command == "x509" {
			c.Short = "Show a certificate in PEM or DER, by default that of standard input"
			return x509Show(c)
		}
		c.Short = "Connect by TLS and tell about protocol and certificates; then carry standard input and output"
		return sClient(c)
	case "version":
		c.Printf("crypto/tls of %s, as wherry's toolbox has it\n", runtime.Version())
		return nil
	}
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	if command == "" {
		return applet.Usage("missing command: s_client, x509 or version")
	}
	return applet.Usage("command %q is not known here: s_client, x509 and version are", command)
}

// doubled writes openssl's long flags, which have one dash, with two.
func doubled(args []string) (out []string) {
	for _, a := range args {
		if len(a) > 2 && a[0] == '-' && a[1] != '-' {
			a = "-" + a
		}
		out = append(out, a)
	}
	return out
}

// tlsClient is one run of s_client.
type tlsClient struct {
	*applet.Call
	conf             *tls.Config
	chain, brief     bool
	strict, proceeds bool
	protocols        string
}

// tlsFlags are the flags of s_client that are not a part of the configuration as they stand.
type tlsFlags struct {
	connect, name, verifyName, ca, cert, key, alpn *string
	plain, show, strict, brief, quiet, proceeds    *bool
}

func (t *tlsClient) flags() (f tlsFlags) {
	f.connect = t.String(",connect", "HOST:PORT", "", "where to connect to; also as the argument")
	f.name = t.String(",servername", "NAME", "", "the name to ask for (SNI); default: the host")
	f.plain = t.Bool(",noservername", "ask for no name")
	f.verifyName = t.String(",verify_hostname", "NAME", "",
		"the name that the certificate must have; default: that of -servername, or the host")
	f.ca = t.String(",CAfile", "FILE", "",
		"certificates of authorities; default: those of this file system, and the cluster's")
	f.cert = t.String(",cert", "FILE", "", "a certificate to show to the server")
	f.key = t.String(",key", "FILE", "", "its key; default: the same file")
	f.show = t.Bool(",showcerts", "print all certificates, not only the server's own")
	f.strict = t.Bool(",verify_return_error", "end with 1 if the certificate is not right")
	f.brief, f.quiet = t.Bool(",brief", "a few lines only"), t.Bool(",quiet", "as -brief")
	f.proceeds = t.Bool(",ign_eof", "go on after the end of input until the server ends")
	t.String(",starttls", "PROTOCOL", "", "not known here")
	t.String(",verify", "DEPTH", "", "does nothing: it is always checked")
	t.Do("4", "IPv4 only", func() { t.protocols = "4" })
	t.Do("6", "IPv6 only", func() { t.protocols = "6" })
	f.alpn = t.String(",alpn", "LIST", "", "protocols to offer, for example h2,http/1.1")
	for i, flag := range []string{"tls1", "tls1_1", "tls1_2", "tls1_3"} {
		version := tls.VersionTLS10 + uint16(i)
		t.Do(","+flag, "only "+tls.VersionName(version),
			func() { t.conf.MinVersion, t.conf.MaxVersion = version, version })
	}
	t.Do(",no_tls1_3", "at most TLS 1.2", func() { t.conf.MaxVersion = tls.VersionTLS12 })
	return f
}

// refuseStartTLS says so before flags are parsed, which would find other faults first.
func refuseStartTLS(args []string) error {
	for i, a := range args {
		if a == "--starttls" || strings.HasPrefix(a, "--starttls=") {
			return applet.Usage("-starttls is not known here (%q): only servers that begin with TLS",
				strings.Join(args[i:min(len(args), i+2)], " "))
		}
	}
	return nil
}

// address is where to connect to, and the host in it; the port is 443 where none is given.
func (f tlsFlags) address(args []string) (addr, host string, err error) {
	addr = *f.connect
	if len(args) == 1 {
		addr = args[0]
	}
	if addr == "" {
		return "", "", applet.Usage("-connect HOST:PORT is missing")
	}
	if host, _, err = net.SplitHostPort(addr); err != nil {
		return net.JoinHostPort(strings.Trim(addr, "[]"), "443"), addr, nil
	}
	return addr, host, nil
}

// configure puts into a configuration what the flags say of it.
func (f tlsFlags) configure(conf *tls.Config, host string) error {
	if conf.ServerName = *f.name; *f.name == "" && !*f.plain {
		conf.ServerName = host
	}
	if *f.alpn != "" {
		conf.NextProtos = strings.Split(*f.alpn, ",")
	}
	if *f.cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(*f.cert, cmp.Or(*f.key, *f.cert))
	if err != nil {
		return err
	}
	conf.Certificates = []tls.Certificate{pair}
	return nil
}

func sClient(c *applet.Call) error {
	t := &tlsClient{Call: c, conf: &tls.Config{}}
	f := t.flags()
	if err := refuseStartTLS(c.Args); err != nil {
		return err
	}
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	addr, host, err := f.address(c.Args)
	if err != nil {
		return err
	}
	if err := f.configure(t.conf, host); err != nil {
		return err
	}
	t.chain, t.brief, t.strict, t.proceeds = *f.show, *f.brief || *f.quiet, *f.strict, *f.proceeds
	return t.run(addr, cmp.Or(*f.verifyName, *f.name, host), *f.ca)
}

// run connects, tells, and carries bytes. The certificate is looked at after the handshake, so that a bad one is shown
// too.
func (t *tlsClient) run(addr, name, ca string) error {
	roots, err := authorities(ca)
	if err != nil {
		return err
	}
	if t.conf.InsecureSkipVerify = true; t.conf.MinVersion == 0 { //nolint:gosec // checked below, and told
		t.conf.MinVersion = tls.VersionTLS10
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	raw, err := (&net.Dialer{Timeout: time.Minute}).DialContext(ctx, "tcp"+t.protocols, addr)
	if err != nil {
		return err
	}
	defer raw.Close()
	t.Printf("CONNECTED to %s\n", raw.RemoteAddr())
	_ = t.Out.Flush()
	conn := tls.Client(raw, t.conf)
	late := time.AfterFunc(time.Minute, func() { raw.Close() })
	err = conn.HandshakeContext(ctx)
	late.Stop()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the server closed the connection: does it speak TLS on this port, in this version, with this name?")
		}
		return fmt.Errorf("TLS handshake with %s: %w", addr, err)
	}
	state := conn.ConnectionState()
	verdict := check(state.PeerCertificates, roots, name)
	t.tell(state, verdict, name)
	if err := t.Out.Flush(); err != nil {
		return err
	}
	if t.strict && verdict != nil {
		return verdict
	}
	return t.carry(ctx, conn)
}

// carry copies standard input to the server, and its answers to standard output.
func (t *tlsClient) carry(ctx context.Context, conn *tls.Conn) error {
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(conn, os.Stdin)
		if err == nil && t.proceeds {
			return
		}
		ended <- err
	}()
	go func() {
		_, err := io.Copy(os.Stdout, conn)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return applet.Exit(130)
	}
}

// authorities are those of a file, or the ones that this file system and the pod have.
func authorities(file string) (*x509.CertPool, error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificates", file)
		}
		return pool, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"); err == nil {
		pool.AppendCertsFromPEM(text)
	}
	return pool, nil
}

// check says what is wrong with a server's certificates.
func check(chain []*x509.Certificate, roots *x509.CertPool, name string) error {
	if len(chain) == 0 {
		return errors.New("the server showed no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return errors.Join(err, chain[0].VerifyHostname(strings.Trim(name, "[]")))
}
