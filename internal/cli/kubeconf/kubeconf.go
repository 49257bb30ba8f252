// SPDX-License-Identifier: Apache-2.0

package kubeconf

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/wherryproject/wherry/internal/cli/session"
)

// ErrUnusual says that a kubeconfig holds something, or lacks something, that this package does not know how to deal
// with.
var ErrUnusual = errors.New("not a plain kubeconfig")

// Target is a server and where in it the user is.
type Target struct {
	Base      *url.URL
	Namespace string // never ""
	session.Server
}

// Read reads a kubeconfig's context, "" for its current one.
func Read(path, contextName string) (*Target, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := parse(text, filepath.Dir(path), contextName)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusual, err)
	}
	return t, nil
}

func parse(text []byte, dir, contextName string) (*Target, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var f file
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has several documents")
	}
	if v, k := f.APIVersion, f.Kind; v != "" && v != "v1" || k != "" && k != "Config" {
		return nil, fmt.Errorf("it is of kind %q, version %q", k, v)
	}
	ctx, c, u, err := f.chosen(contextName)
	if err != nil {
		return nil, err
	}
	t := &Target{Namespace: string(ctx.Namespace)}
	if t.Namespace == "" {
		t.Namespace = "default"
	}
	if t.Base, err = url.Parse(string(c.Server)); err != nil || t.Base.Scheme != "https" || t.Base.Host == "" ||
		t.Base.RawQuery != "" || t.Base.User != nil {
		return nil, errors.New("the server is not a plain https URL")
	}
	if t.TLS, err = tlsOf(c, u, dir); err != nil {
		return nil, err
	}
	if u.Token != "" {
		t.Header = http.Header{"Authorization": {"Bearer " + string(u.Token)}}
	}
	return t, nil
}

// chosen is the context of that name with its cluster and user. A name that is there twice is unusual.
func (f *file) chosen(contextName string) (ctx context, c cluster, u user, err error) {
	name := word(contextName)
	if name == "" {
		name = f.Current
	}
	found := 0
	for _, x := range f.Contexts {
		if x.Name == name {
			ctx = x.Context
			found++
		}
	}
	clusters := 0
	for _, x := range f.Clusters {
		if x.Name == ctx.Cluster {
			c = x.Cluster
			clusters++
		}
	}
	users := 0
	for _, x := range f.Users {
		if x.Name == ctx.User {
			u = x.User
			users++
		}
	}
	if name == "" || found != 1 || clusters != 1 || users != 1 {
		return ctx, c, u, errors.New("it does not say which server and user")
	}
	return ctx, c, u, nil
}

func tlsOf(c cluster, u user, dir string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	ca, err := content(c.CAData, c.CA, dir)
	if err != nil {
		return nil, err
	}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("its certificate authority is not a certificate")
		}
	}
	cert, err := content(u.CertData, u.Cert, dir)
	if err != nil {
		return nil, err
	}
	key, err := content(u.KeyData, u.Key, dir)
	if err != nil {
		return nil, err
	}
	if len(cert) == 0 && len(key) == 0 {
		return config, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// content is what is given as data or in a file. Both is an oddity that client-go warns of.
func content(given data, path word, dir string) ([]byte, error) {
	switch {
	case path == "":
		return given, nil
	case given != nil:
		return nil, errors.New("a certificate or key is given twice")
	case filepath.IsAbs(string(path)):
		return os.ReadFile(string(path))
	}
	return os.ReadFile(filepath.Join(dir, string(path)))
}
