// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Files of the key that signs service account tokens.
const (
	AccountKeyFile    = "sa.key"
	FormerAccountKeys = "sa-former.pub" // public keys of former ones, whose tokens are still good
)

// ErrRotating says that a rotation was begun and not finished yet.
var ErrRotating = errors.New("a rotation is under way")

// Rotating reports whether a rotation of the folder was begun and not finished.
func Rotating(dir string) (bool, error) {
	ca, err := Load(dir)
	if err != nil {
		return false, err
	}
	return len(ca.former) > 0, nil
}

// Folders of authorities beside the server's own, below its folder: their certificates are no logins.
const (
	FrontProxyDir = "front-proxy" // of the certificate that the server shows to other API servers
	PodsDir       = "pods"        // of pods' certificates
)

// RotateAll rotates the folder's authority, as Rotate does, and those beside it. One of these that was rotated already
// by a run that was cut off is left.
func RotateAll(dir string) error {
	if rotating, err := Rotating(dir); err != nil || rotating {
		if err == nil {
			err = ErrRotating
		}
		return err
	}
	for _, beside := range []string{FrontProxyDir, PodsDir} {
		err := Rotate(filepath.Join(dir, beside))
		if err != nil && !errors.Is(err, errNone) && !errors.Is(err, ErrRotating) {
			return err
		}
	}
	return Rotate(dir)
}

// FinishAll ends the overlap of all that RotateAll has rotated.
func FinishAll(dir string) (bool, error) {
	for _, beside := range []string{FrontProxyDir, PodsDir} {
		if _, err := Finish(filepath.Join(dir, beside)); err != nil && !errors.Is(err, errNone) {
			return false, err
		}
	}
	return Finish(dir)
}

// Rotate puts a new CA and a new key for service account tokens in place of those in dir. What was signed before stays
// good: the former CA stays trusted (CertPEM, Pool), who trusts only the former one accepts what the new one signs (the
// chain goes on to it), and the former key's public half is kept. Nobody may use the folder meanwhile. A rotation that
// is cut off has either not taken place or is whole. It returns ErrRotating while the one before is not finished.
func Rotate(dir string) error {
	if err := finishRotation(dir); err != nil {
		return err
	}
	old, err := Load(dir)
	if err != nil {
		return err
	}
	if len(old.former) > 0 {
		return ErrRotating
	}
	if err := rotateAccountKey(dir); err != nil {
		return err
	}
	next, keyPEM, err := newCA(fmt.Sprintf("%s-%d", withoutTime(old.cert.Subject.CommonName), time.Now().Unix()))
	if err != nil {
		return err
	}
	var cross []byte // empty if nobody can trust the old one any more
	if old.ValidAt(time.Now()) == nil {
		if cross, err = old.crossSign(next); err != nil {
			return err
		}
	}
	// Up to the first rename nothing of this counts; from there on, finishRotation ends what was begun.
	for _, f := range []struct {
		name string
		data []byte
		perm os.FileMode
	}{
		{formerFile, old.pem, 0o644},
		{crossFile, cross, 0o644},
		{certFile + nextSuffix, next.pem, 0o644},
		{keyFile + nextSuffix, keyPEM, 0o600},
	} {
		if len(f.data) == 0 {
			continue
		}
		if err := WriteFile(filepath.Join(dir, f.name), f.data, f.perm); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(dir, keyFile+nextSuffix), filepath.Join(dir, keyFile)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, certFile+nextSuffix), filepath.Join(dir, certFile))
}

// withoutTime is an authority's name without what a rotation has put behind it.
func withoutTime(name string) string {
	before, digits, found := cutLast(name, "-")
	if _, err := strconv.ParseUint(digits, 10, 64); !found || err != nil {
		return name
	}
	return before
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Finish ends the overlap: what the CA and the account keys before the last Rotate have signed is refused from now on.
// The result is false when there is nothing to finish.
func Finish(dir string) (bool, error) {
	rotating, err := Rotating(dir)
	if err != nil {
		return false, err
	}
	for _, name := range []string{crossFile, FormerAccountKeys, formerFile} { // the last one is what Rotating goes by
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return rotating, nil
}

// finishRotation brings a rotation that was cut off to its end, if the new key is in place, or else makes it never have
// been.
func finishRotation(dir string) error {
	cert, key := filepath.Join(dir, certFile), filepath.Join(dir, keyFile)
	if _, err := os.Stat(cert + nextSuffix); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := os.Stat(key + nextSuffix); err == nil || !keyOf(key, cert+nextSuffix) {
		return errors.Join(os.Remove(cert+nextSuffix), ignoreMissing(os.Remove(key+nextSuffix)))
	}
	return os.Rename(cert+nextSuffix, cert)
}

func keyOf(keyFile, certFile string) bool {
	key, err := LoadKey(keyFile)
	if err != nil {
		return false
	}
	certs, err := ReadCertificates(certFile)
	return err == nil && sameKey(certs[0].PublicKey, key.Public())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// crossSign certifies the next CA's name and key as an authority, so that those who know only this CA accept what it
// signs.
func (c *CA) crossSign(next *CA) ([]byte, error) {
	template, err := caTemplate(next.cert.Subject.CommonName)
	if err != nil {
		return nil, err
	}
	template.SubjectKeyId = next.cert.SubjectKeyId
	template.NotAfter = c.cert.NotAfter
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, next.key.Public(), c.key)
	if err != nil {
		return nil, fmt.Errorf("sign the new authority with the one before: %w", err)
	}
	return encodeCert(der), nil
}

// rotateAccountKey keeps the public half of the key in use before it puts a new one in its place.
func rotateAccountKey(dir string) error {
	file := filepath.Join(dir, AccountKeyFile)
	key, err := LoadKey(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a server makes one at its start
	}
	if err != nil {
		return err
	}
	former, err := ReadPublicKeys(filepath.Join(dir, FormerAccountKeys))
	if err != nil {
		return err
	}
	var all []byte
	for _, pub := range append([]crypto.PublicKey{key.Public()}, former...) {
		der, err := x509.MarshalPKIXPublicKey(pub)
		if err != nil {
			return err
		}
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	}
	if err := WriteFile(filepath.Join(dir, FormerAccountKeys), all, 0o644); err != nil {
		return err
	}
	_, err = createKey(file)
	return err
}

// ReadPublicKeys reads the public keys of a PEM file; a file that is not there has none.
func ReadPublicKeys(file string) (keys []crypto.PublicKey, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return keys, nil
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if _, ok := key.(*ecdsa.PublicKey); !ok {
			return nil, fmt.Errorf("%s: a key is not an ECDSA key", file)
		}
		keys = append(keys, key)
	}
}
