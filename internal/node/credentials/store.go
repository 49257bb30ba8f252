// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/certificate"
)

// notifyingStore keeps the certificate in use in a file, and signals when there is a first one.
type notifyingStore struct {
	certificate.FileStore
	dir     string
	prefix  string
	once    sync.Once
	updated chan struct{} // closed after the first update
}

func newStore(prefix string, c Config) (*notifyingStore, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	files, err := certificate.NewFileStoreWithLogger(logr.Discard(), prefix, dir, dir, "", "")
	if err != nil {
		return nil, err
	}
	return &notifyingStore{FileStore: files, dir: dir, prefix: prefix, updated: make(chan struct{})}, nil
}

// Update implements certificate.Store.
func (s *notifyingStore) Update(cert, key []byte) (*tls.Certificate, error) {
	pair, err := s.FileStore.Update(cert, key)
	if err != nil {
		return nil, err
	}
	s.once.Do(func() { close(s.updated) })
	return pair, s.removeFormer()
}

// forget makes as if there were no certificate; its file goes when there is another one.
func (s *notifyingStore) forget() error {
	if err := os.Remove(s.CurrentPath()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeFormer removes the keys that are no longer in use; the file store leaves each beside the next.
func (s *notifyingStore) removeFormer() error {
	used, err := os.Readlink(s.CurrentPath())
	if err != nil {
		return err
	}
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		path := filepath.Join(s.dir, f.Name())
		if f.Type().IsRegular() && path != used && strings.HasPrefix(f.Name(), s.prefix+"-") &&
			strings.HasSuffix(f.Name(), ".pem") {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}
