// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/cutline"
)

// TestCopyCut: a copy from a pod of which the line is cut in the middle goes on from where it was, and is whole;
// nothing is left of what it was until then (DC-16, DA-09).
func TestCopyCut(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("box",
		Sh("mkdir -p /d/sub; head -c 20000000 /dev/urandom >/d/large; echo small >/d/sub/small; ln /d/large /d/twin; sha256sum </d/large >/sum; "+Idle)))
	s.WaitReady("box")
	sum, _, _ := strings.Cut(s.Kubectl("exec", "box", "--", "sh", "-c",
		"until [ -s /sum ]; do sleep 0.1; done; cat /sum").Out, " ")
	text, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []int64{1 << 20, 15 << 20} {
		line := cutline.New(t, strings.TrimPrefix(s.Config.Host, "https://"), after)
		dir := t.TempDir()
		away := filepath.Join(dir, "kubeconfig")
		if err := os.WriteFile(away, []byte(strings.ReplaceAll(string(text), s.Config.Host, "https://"+line.Address())),
			0o600); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "d")
		s.wherry(nil, "cp", "--kubeconfig", away, "box:/d", to).exits(0).Says("continues from where it was")
		if !line.Cut() {
			t.Errorf("the line was not cut after %d bytes", after)
		}
		for _, name := range []string{"large", "twin"} {
			f, err := os.Open(filepath.Join(to, name))
			if err != nil {
				t.Fatal(err)
			}
			h := sha256.New()
			_, err = io.Copy(h, f)
			f.Close()
			if got := fmt.Sprintf("%x", h.Sum(nil)); err != nil || got != sum {
				t.Errorf("cut after %d bytes: %s has the checksum %s, want %s (%v)", after, name, got, sum, err)
			}
		}
		var names []string
		if err := filepath.WalkDir(to, func(path string, _ os.DirEntry, err error) error {
			names = append(names, strings.TrimPrefix(path, to))
			return err
		}); err != nil || strings.Join(names, " ") != " /large /sub /sub/small /twin" {
			t.Errorf("cut after %d bytes: %v, %v", after, names, err)
		}
	}
}

// TestCopyCutInto: a copy into a pod of which the line is cut goes on from where it was: each file is whole, and
// nothing is left beside it (DC-16, DA-09, IX-04).
func TestCopyCutInto(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("box", Sh("mkdir /in; "+Idle)))
	s.WaitReady("box")
	text, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(t.TempDir(), "d")
	if err := os.MkdirAll(filepath.Join(from, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 40_000_000)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(large)
	for name, text := range map[string][]byte{"large": large, "after": []byte("after\n"),
		"sub/small": []byte("small\n")} {
		if err := os.WriteFile(filepath.Join(from, name), text, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(large))
	for i, after := range []int64{100 << 10, 12 << 20, 35 << 20, 40_010_000} {
		line := cutline.New(t, strings.TrimPrefix(s.Config.Host, "https://"), after)
		away := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(away, []byte(strings.ReplaceAll(string(text), s.Config.Host, "https://"+line.Address())),
			0o600); err != nil {
			t.Fatal(err)
		}
		to := fmt.Sprintf("/in/d%d", i)
		r := s.wherry(nil, "cp", "--kubeconfig", away, from, "box:"+to).exits(0)
		if !line.Cut() {
			t.Errorf("the line was not cut after %d bytes", after)
		}
		if after > 1<<20 && after < 40_000_000 {
			r.Says("continues from where it was")
		}
		s.Kubectl("exec", "box", "--", "sh", "-c", "cd "+to+
			" && find . | sort && sha256sum <large && cat after sub/small").Is(
			".\n./after\n./large\n./sub\n./sub/small\n" + sum + "  -\nafter\nsmall")
	}
}

// TestCopyAll: all of a container is copied without what the kernel makes in it; FOLDER/. is what is in a folder, both
// ways (DC-16, IX-04).
func TestCopyAll(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("box", Sh("mkdir -p /src/sub; echo a >/src/a; echo b >/src/sub/b; "+Idle)))
	s.WaitReady("box")
	dir := t.TempDir()
	for _, source := range []string{"box:/", "box:/."} {
		to := filepath.Join(dir, strings.Trim(source, "box:/")+"root")
		s.wherry(nil, "cp", source, to).exits(0)
		if text, err := os.ReadFile(filepath.Join(to, "src/sub/b")); err != nil || string(text) != "b\n" {
			t.Errorf("%s: %q, %v", source, text, err)
		}
		for _, kernels := range []string{"proc", "sys", "dev"} {
			if _, err := os.Lstat(filepath.Join(to, kernels)); !os.IsNotExist(err) {
				t.Errorf("%s: %s is there: %v", source, kernels, err)
			}
		}
	}
	there := filepath.Join(dir, "there")
	if err := os.Mkdir(there, 0o755); err != nil {
		t.Fatal(err)
	}
	s.wherry(nil, "cp", "box:/src/.", there).exits(0)
	s.wherry(nil, "cp", "box:/src/.", filepath.Join(dir, "new")).exits(0)
	for _, to := range []string{"there/a", "there/sub/b", "new/a", "new/sub/b"} {
		if _, err := os.Stat(filepath.Join(dir, to)); err != nil {
			t.Error(err)
		}
	}
	s.Kubectl("exec", "box", "--", "mkdir", "/back")
	s.wherry(nil, "cp", there+"/.", "box:/back").exits(0)
	s.Kubectl("exec", "box", "--", "cat", "/back/a", "/back/sub/b").Is("a\nb")
}
