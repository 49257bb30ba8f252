// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// FuzzFolder: whatever a data folder's small files hold, the folder is taken or refused in words that name the file. One that is taken is
// stamped, so that the next program knows who wrote it; the labels of namespaces are all there or none.
func FuzzFolder(f *testing.F) {
	for _, text := range []string{
		`{"format":1,"wherry":"0.1.0","kubernetes":"1.37.0"}`, `{"format":2,"wherry":"9.0.0"}`, `{"format":0}`,
		`{"format":-1}`, `{}`, ``, `null`, `[1]`, `{"format":1e30}`, `{"format":1}garbage`,
		"4711\n", "-1", "0", "99999999999999999999", " 7 ",
		`{"revision":7,"labels":{"default":{"pod-security.kubernetes.io/enforce":"baseline"},"kube-system":null}}`,
		`{"labels":{"a":{"b":5}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		for _, name := range []string{stampName, "lock", filepath.Base(spacesFile(dir))} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		now := stamp{Format: format, Wherry: "1.0.0", Kubernetes: "1.37.0"}
		if err := checkVersion(dir, now); err != nil {
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("not said which folder: %v", err)
			}
		} else if got, err := readStamp(filepath.Join(dir, stampName)); err != nil || got != now {
			t.Errorf("the folder is taken and stamped %+v: %v", got, err)
		}
		if pid, ok := LockHolder(dir); ok && pid <= 0 {
			t.Errorf("process %d holds the lock", pid)
		}
		s := readSpaces(dir)
		if len(s.Labels) == 0 && s.Revision == 0 {
			return
		}
		server := &Server{opts: Options{DataDir: dir}}
		if server.writeSpaces(s, nil); !reflect.DeepEqual(readSpaces(dir), s) {
			t.Errorf("%+v is then %+v", s, readSpaces(dir))
		}
	})
}

// FuzzKubeconfigMode: the kubeconfig, which makes an administrator, never gets a mode that lets others write it, or root not read it.
func FuzzKubeconfigMode(f *testing.F) {
	for _, text := range []string{"600", "640", "0644", "777", "400", "-1", "0o600", "1640", "", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Options{KubeconfigMode: text}.kubeconfigAccess()
		if err != nil {
			if !strings.Contains(err.Error(), "--write-kubeconfig-mode") {
				t.Errorf("not said of which flag: %v", err)
			}
			return
		}
		if a.mode&0o600 != 0o600 || a.mode&^0o644 != 0 {
			t.Errorf("%q is %v", text, a.mode)
		}
	})
}
