// SPDX-License-Identifier: Apache-2.0

package kubeconf

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/wherryproject/wherry/internal/cli/session"
)

// ErrUnusual says that a kubeconfig holds something, or lacks something, that this package does not know how to deal with.
var ErrUnusual = errors.New("not a plain kubeconfig")

// Target is a server and where in it the user is.
type Target struct {
	Base      *url.URL
	Namespace string // never ""
	session.Server
}

// file is a kubeconfig; what it has beyond this is unusual.
type file struct {
	APIVersion  string         `yaml:"apiVersion"`
	Kind        string         `yaml:"kind"`
	Preferences map[string]any `yaml:"preferences"`
	Extensions  any            `yaml:"extensions"`
	Current     string         `yaml:"current-context"`
	Clusters    []struct {
		Name    string  `yaml:"name"`
		Cluster cluster `yaml:"cluster"`
	} `yaml:"clusters"`
	Contexts []struct {
		Name    string  `yaml:"name"`
		Context context `yaml:"context"`
	} `yaml:"contexts"`
	Users []struct {
		Name string `yaml:"name"`
		User user   `yaml:"user"`
	} `yaml:"users"`
}

type cluster struct {
	Server     string `yaml:"server"`
	CA         string `yaml:"certificate-authority"`
	CAData     string `yaml:"certificate-authority-data"`
	Extensions any    `yaml:"extensions"`
}

type context struct {
	Cluster    string `yaml:"cluster"`
	User       string `yaml:"user"`
	Namespace  string `yaml:"namespace"`
	Extensions any    `yaml:"extensions"`
}

type user struct {
	Cert       string `yaml:"client-certificate"`
	CertData   string `yaml:"client-certificate-data"`
	Key        string `yaml:"client-key"`
	KeyData    string `yaml:"client-key-data"`
	Token      string `yaml:"token"`
	Extensions any    `yaml:"extensions"`
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
	if d.Decode(&struct{}{}) == nil {
		return nil, errors.New("it has several documents")
	}
	ctx, c, u, err := f.chosen(contextName)
	if err != nil {
		return nil, err
	}
	t := &Target{Namespace: ctx.Namespace}
	if t.Namespace == "" {
		t.Namespace = "default"
	}
	if t.Base, err = url.Parse(c.Server); err != nil || t.Base.Scheme != "https" || t.Base.Host == "" || t.Base.RawQuery != "" || t.Base.User != nil {
		return nil, errors.New("the server is no plain https URL")
	}
	if t.TLS, err = tlsOf(c, u, dir); err != nil {
		return nil, err
	}
	if u.Token != "" {
		t.Header = http.Header{"Authorization": {"Bearer " + u.Token}}
	}
	return t, nil
}

// chosen is the context of that name with its cluster and user. A name that is there twice is unusual.
func (f *file) chosen(name string) (ctx context, c cluster, u user, err error) {
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
			return nil, errors.New("its certificate authority is none")
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

// content is what is given as data or, if there is none, in a file.
func content(data, path, dir string) ([]byte, error) {
	if data != "" || path == "" {
		return base64.StdEncoding.DecodeString(data)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return os.ReadFile(path)
}
