// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// RS-07: a server that is killed at any moment while it makes its CA starts the next time, with a CA that is whole: nobody can have trusted
// one that was not. Before, a key without its certificate was refused for ever.
// ATTACK C28.
func TestCreationCutOff(t *testing.T) {
	file := func(dir, name string) string { return filepath.Join(dir, name) }
	for name, undo := range map[string]func(dir string) error{
		"before the certificate": func(dir string) error {
			return errors.Join(os.Remove(file(dir, keyFile)), os.Remove(file(dir, certFile)))
		},
		"before the key": func(dir string) error {
			return errors.Join(os.Remove(file(dir, keyFile)), os.Rename(file(dir, certFile), file(dir, certFile+nextSuffix)))
		},
		"amid the certificate": func(dir string) error {
			return errors.Join(os.Remove(file(dir, keyFile)), os.Remove(file(dir, certFile)), os.WriteFile(file(dir, certFile+nextSuffix), []byte("-----BEGIN"), 0o600))
		},
		"between key and certificate": func(dir string) error { return os.Rename(file(dir, certFile), file(dir, certFile+nextSuffix)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			load(t, dir)
			if err := undo(dir); err != nil {
				t.Fatal(err)
			}
			ca := load(t, dir)
			if err := visit(t, ca, load(t, dir), ca.Pool(), ca.Pool()); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(file(dir, certFile+nextSuffix)); err == nil {
				t.Error("the next certificate is left")
			}
		})
	}
	for _, blocked := range []string{certFile, keyFile, certFile + nextSuffix} { // cut off by what cannot be written
		dir := t.TempDir()
		if err := os.Mkdir(file(dir, blocked), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := create(dir, "test-ca"); err == nil {
			t.Fatalf("%s is in place of a folder", blocked)
		}
		if err := os.Remove(file(dir, blocked)); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadOrCreate(dir, "test-ca"); err != nil {
			t.Errorf("cut off at %s: %v", blocked, err)
		}
	}
}

// RS-07: a CA one of whose files is missing, empty, damaged or another's is refused in words that name the file and advise to remove
// nothing; what is there is left as it is. A key of service account tokens that is missing is made anew; one that is damaged is not.
// ATTACK C27.
func TestDamagedFiles(t *testing.T) {
	other := t.TempDir()
	load(t, other)
	copyFrom := func(dir, name string) error {
		text, err := os.ReadFile(filepath.Join(other, name))
		return errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	garbage := []byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n")
	for name, tc := range map[string]struct {
		harm func(dir string) error
		want []string
	}{
		"key missing":             {func(dir string) error { return os.Remove(filepath.Join(dir, keyFile)) }, []string{keyFile, "backup"}},
		"certificate missing":     {func(dir string) error { return os.Remove(filepath.Join(dir, certFile)) }, []string{certFile, "backup"}},
		"key empty":               {func(dir string) error { return os.Truncate(filepath.Join(dir, keyFile), 0) }, []string{keyFile, "no PEM private key"}},
		"certificate empty":       {func(dir string) error { return os.Truncate(filepath.Join(dir, certFile), 0) }, []string{certFile}},
		"key garbage":             {func(dir string) error { return os.WriteFile(filepath.Join(dir, keyFile), garbage, 0o600) }, []string{keyFile}},
		"certificate garbage":     {func(dir string) error { return os.WriteFile(filepath.Join(dir, certFile), garbage, 0o600) }, []string{certFile}},
		"key cut":                 {func(dir string) error { return os.Truncate(filepath.Join(dir, keyFile), 60) }, []string{keyFile}},
		"key of another CA":       {func(dir string) error { return copyFrom(dir, keyFile) }, []string{"does not belong"}},
		"certificate of another":  {func(dir string) error { return copyFrom(dir, certFile) }, []string{"does not belong"}},
		"a certificate of no CA":  {withoutCA, []string{certFile, "may not sign"}},
		"key and certificate mix": {func(dir string) error { return os.Rename(filepath.Join(dir, keyFile), filepath.Join(dir, certFile)) }, []string{keyFile}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			load(t, dir)
			if err := tc.harm(dir); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)
			_, err := LoadOrCreate(dir, "test-ca")
			if err == nil {
				t.Fatal("loaded")
			}
			t.Log(err)
			for _, w := range append(tc.want, dir) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
			if strings.Contains(err.Error(), "remove") || strings.Contains(err.Error(), "delete") {
				t.Errorf("advises to destroy: %v", err)
			}
			if after := contents(t, dir); after != before {
				t.Errorf("the folder was changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
	file := filepath.Join(t.TempDir(), AccountKeyFile)
	first, err := LoadOrCreateKey(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, harm := range map[string]func() error{
		"empty": func() error { return os.Truncate(file, 0) }, "garbage": func() error { return os.WriteFile(file, garbage, 0o600) },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadOrCreateKey(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if again, err := LoadOrCreateKey(file); err != nil || again.Equal(first) {
		t.Errorf("missing: %v", err)
	}
}

// withoutCA puts a certificate of the CA's, which may not sign others, in its place.
func withoutCA(dir string) error {
	ca, err := Load(dir)
	if err != nil {
		return err
	}
	cert, _, err := ca.Serving([]string{"x"}, nil)
	return errors.Join(err, os.WriteFile(filepath.Join(dir, certFile), cert, 0o600))
}

// contents are the files of a folder, in one text.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(e.Name() + ": " + string(text) + "\n")
	}
	return all.String()
}
