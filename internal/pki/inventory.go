// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// Item is a certificate or a key, for a person to read about.
type Item struct {
	Name    string     `json:"name"`
	Where   string     `json:"where"`             // file or address
	Subject string     `json:"subject,omitempty"` // of a certificate
	Issuer  string     `json:"issuer,omitempty"`
	Ends    *time.Time `json:"ends,omitempty"` // none: a key, which does not end
	Renewal string     `json:"renewal"`        // who renews it
}

// Describe makes an item of a certificate.
func Describe(name, where, renewal string, cert *x509.Certificate) Item {
	ends := cert.NotAfter.UTC()
	return Item{Name: name, Where: where, Subject: cert.Subject.String(), Issuer: cert.Issuer.CommonName, Ends: &ends,
		Renewal: renewal}
}

// ByRotation is the Renewal of what only a person renews.
const ByRotation = "wherry certs rotate"

const (
	byServer = "by the running server"
	byAgent  = "by the running agent"
	byFinish = "goes with wherry certs rotate --finish"
)

// Inventory lists what lies in a data folder: a server's, an agent's or both. Files that are not there are left out.
func Inventory(dataDir string) (items []Item, err error) {
	dir := filepath.Join(dataDir, "pki")
	var errs []error
	for _, f := range []struct{ name, file, renewal string }{
		{"CA", certFile, ByRotation},
		{"CA before", formerFile, byFinish},
		{"CA, for those who know the one before", crossFile, byFinish},
		{"CA of pods' certificates", filepath.Join(PodsDir, certFile), ByRotation},
		{"CA of pods' certificates before", filepath.Join(PodsDir, formerFile), byFinish},
		{"CA of the front proxy", filepath.Join(FrontProxyDir, certFile), ByRotation},
		{"CA of the front proxy before", filepath.Join(FrontProxyDir, formerFile), byFinish},
		{"agent's client certificate", "agent-client-current.pem", byAgent},
		{"agent's serving certificate", "agent-serving-current.pem", byAgent},
	} {
		path := filepath.Join(dir, f.file)
		certs, err := ReadCertificates(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, onlyRoot(dir) // nor any of the others
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.name, err))
			continue
		}
		items = append(items, Describe(f.name, path, f.renewal, certs[0]))
	}
	if path := filepath.Join(dir, AccountKeyFile); exists(path) {
		items = append(items, Item{Name: "key of service account tokens", Where: path, Renewal: ByRotation})
	}
	if path := filepath.Join(dir, FormerAccountKeys); exists(path) {
		items = append(items, Item{Name: "former keys of service account tokens", Where: path, Renewal: byFinish})
	}
	admin, err := kubeconfigItem(filepath.Join(dataDir, "kubeconfig"))
	return append(items, admin...), errors.Join(append(errs, err)...)
}

func kubeconfigItem(path string) ([]Item, error) {
	if !exists(path) {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, onlyRoot(path)
	}
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	certs, err := ParseCertificates(config.CertData)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return []Item{Describe("administrator's kubeconfig", path, byServer, certs[0])}, nil
}

// onlyRoot says what to do about certificates and keys that the user may not read.
func onlyRoot(path string) error {
	return fmt.Errorf("only root may read %s: run it with sudo (%w)", path, fs.ErrPermission)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
