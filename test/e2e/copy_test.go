// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
)

// TestCopy: kubectl cp carries files and folders into a container and out of it, unharmed.
func TestCopy(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("box", Sh(Idle), Tool("sleep")))
	s.WaitReady("box")
	dir := t.TempDir()
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		transports(t, s, func(t *testing.T, s *Space, env []string) {
			dir := t.TempDir()
			data := make([]byte, 2<<20)
			rand.Read(data)
			for path, content := range map[string][]byte{"tree/large": data, "tree/sub/small": []byte("small\n"), "tree/empty": nil} {
				file := filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, content, 0o640); err != nil {
					t.Fatal(err)
				}
			}
			ok := func(args ...string) {
				t.Helper()
				if r := s.KubectlEnv(env, args...); r.Code != 0 {
					t.Fatalf("%s: %d %s%s", r.Line, r.Code, r.Out, r.Err)
				}
			}
			ok("exec", "box", "--", "rm", "-rf", "/tmp/in")
			ok("cp", filepath.Join(dir, "tree"), "box:/tmp/in")
			s.Kubectl("exec", "box", "--", "cat", "/tmp/in/sub/small").Is("small")
			ok("cp", "box:/tmp/in", filepath.Join(dir, "back"))
			got, err := os.ReadFile(filepath.Join(dir, "back", "large"))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back of %d, or others (%v)", len(got), len(data), err)
			}
			ok("cp", "-c", "main", "box:/tmp/in/sub/small", filepath.Join(dir, "one"))
			if got, err := os.ReadFile(filepath.Join(dir, "one")); string(got) != "small\n" {
				t.Errorf("%q, %v", got, err)
			}
		})
	})
	// What kubectl says and how it ends depends on which of its halves is faster; nothing must be made of nothing.
	s.KubectlEnv(nil, "cp", "box:/no/such/file", filepath.Join(dir, "nothing"))
	if _, err := os.Stat(filepath.Join(dir, "nothing")); !os.IsNotExist(err) {
		t.Errorf("copying a file that is not there made one (%v)", err)
	}
}
