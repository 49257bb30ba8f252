// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/cutline"
)

// TestCopyKilled: a server that is killed in the middle of a copy, out of a pod or into one, and started again: the
// copy goes on from where it was, what has come is not sent once more, checksums are right, and nothing is left beside
// the files (DC-16, DA-09, SC-19).
func TestCopyKilled(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	// the same when it comes back
	srv := own(t, ServerOptions{Args: []string{"--secure-port", strconv.Itoa(FreePort(t))}})
	s := srv.Space(t)
	const size, first, kill = 100_000_000, 20_000_000, 70_000_000
	s.Create(NewPod("box", Sh(fmt.Sprintf("mkdir /d /in; head -c %d /dev/urandom >/d/a-first; echo small >/d/b-small; "+
		"head -c %d /dev/urandom >/d/c-large; sha256sum </d/c-large >/sum; %s", first, size, Idle))))
	s.WaitReady("box")
	sum, _, _ := strings.Cut(s.Kubectl("exec", "box", "--", "sh", "-c",
		"until [ -s /sum ]; do sleep 0.1; done; cat /sum").Out, " ")
	dir := t.TempDir()

	k := killing{s, srv, kill, first + size}
	k.cp(filepath.Join(dir, "out"), "box:/d", filepath.Join(dir, "d"))
	if got := sumOf(t, filepath.Join(dir, "d/c-large")); got != sum {
		t.Errorf("out of the pod: the checksum is %s, want %s", got, sum)
	}
	var names []string
	entries, err := os.ReadDir(filepath.Join(dir, "d"))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); err != nil || got != "a-first b-small c-large" {
		t.Errorf("out of the pod: there are %s, %v", got, err)
	}

	from := filepath.Join(dir, "from")
	if err := os.Mkdir(from, 0o755); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, first+size)
	_, _ = rand.NewChaCha8([32]byte{4}).Read(large)
	for name, text := range map[string][]byte{"a-first": large[:first], "b-small": []byte("small\n"),
		"c-large": large[first:]} {
		if err := os.WriteFile(filepath.Join(from, name), text, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	k.cp(filepath.Join(dir, "in"), from, "box:/in/d")
	s.Kubectl("exec", "box", "--", "sh", "-c", "cd /in/d && find . | sort && sha256sum <c-large && cat b-small").Is(
		".\n./a-first\n./b-small\n./c-large\n" + sumOf(t, filepath.Join(from, "c-large")) + "  -\nsmall")
}

// killing is a copy during which the server is killed.
type killing struct {
	*Space
	srv   *Server
	after int64 // bytes of the copy
	size  int64 // of all of it
}

// cp copies by a line on which the server's end can be seen coming, and waits until it has come back.
func (k killing) cp(kubeconfig, from, to string) {
	k.T.Helper()
	again := make(chan error, 1)
	line := cutline.At(k.T, strings.TrimPrefix(k.Config.Host, "https://"), k.after, func() {
		k.srv.Kill()
		go func() { again <- k.srv.Start(context.Background()) }()
	})
	text, err := os.ReadFile(k.Kubeconfig)
	if err == nil {
		text = []byte(strings.ReplaceAll(string(text), k.Config.Host, "https://"+line.Address()))
		err = os.WriteFile(kubeconfig, text, 0o600)
	}
	if err != nil {
		k.T.Fatal(err)
	}
	r := k.wherry(nil, "cp", "--kubeconfig", kubeconfig, from, to)
	if !line.Cut() {
		k.T.Fatalf("%s: the server was not killed; exit code %d: %s", r.Line, r.Code, r.Err)
	}
	if err := <-again; err != nil {
		k.T.Fatal(err)
	}
	r.exits(0).Says("continues from where it was")
	// TLS and headers are under a hundredth, what was on its way some megabytes; from the beginning it would be seven
	// tenths
	if most := k.size + k.size/4; line.Passed() > most {
		k.T.Errorf("%s: %d bytes went over the line for %d", r.Line, line.Passed(), k.size)
	}
}

// sumOf is the checksum of a file.
func sumOf(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(errors.Join(err, errors.New(file)))
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
