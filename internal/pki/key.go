// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadKey reads a private key in PEM form (PKCS#8, PKCS#1 or SEC 1).
func LoadKey(file string) (crypto.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s contains no PEM private key", file)
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, fmt.Errorf("%s contains no private key of a supported type", file)
}

// LoadOrCreateKey reads an ECDSA P-256 key from file, or makes one there (mode 0600) when the file does not exist.
func LoadOrCreateKey(file string) (*ecdsa.PrivateKey, error) {
	signer, err := LoadKey(file)
	if err == nil {
		if key, ok := signer.(*ecdsa.PrivateKey); ok && key.Curve == elliptic.P256() {
			return key, nil
		}
		return nil, fmt.Errorf("%s must hold an ECDSA P-256 key", file)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return createKey(file)
}

// createKey makes a key and writes it to file, over another one if there is one.
func createKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return key, WriteFile(file, keyPEM, 0o600)
}

// WriteFile writes a file complete or not at all: a temporary neighbour, synced, then renamed into place.
func WriteFile(name string, data []byte, perm os.FileMode) error {
	return WriteFileFor(-1, -1, name, data, perm)
}

// WriteFileFor is WriteFile of a file that is uid's and gid's from its beginning, and so are the folders that are made
// for it; -1 stands for this process's own.
func WriteFileFor(uid, gid int, name string, data []byte, perm os.FileMode) (err error) {
	if err := mkdirAllFor(uid, gid, filepath.Dir(name)); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chown(uid, gid), f.Chmod(perm), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// mkdirAllFor makes a folder and those above it that are missing.
func mkdirAllFor(uid, gid int, dir string) error {
	var made []string
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, m := range made {
		// Not through a link: somebody else may have put one there meanwhile.
		if err := os.Lchown(m, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
