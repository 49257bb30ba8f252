// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzLogins keeps a login in a file that somebody else wrote, and forgets it again.
func FuzzLogins(f *testing.F) {
	f.Add([]byte(`{"auths":{"https://index.docker.io/v1/":{"auth":"eA=="}},"credsStore":"x"}`), "docker.io", "jane", "secret")
	f.Add([]byte("null"), "h:5000", "", "")
	f.Add([]byte(`{"auths":null}`), "https://H/", "a:b", "\xff")
	f.Add([]byte(`{"auths":[]}`), "h", "a", "b")
	f.Add([]byte(`{"auths":{"":1,"h":null}}`), "http://h", "a", "b")
	f.Add([]byte(`{"AuthS":1,"auths":{}}`), "h", "a", "b")
	f.Fuzz(func(t *testing.T, data []byte, name, user, password string) {
		host, err := Host(name)
		if err != nil {
			return
		}
		logins := Logins{Path: filepath.Join(t.TempDir(), "config.json")}
		if err := os.WriteFile(logins.Path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if logins.Set(host, Login{user, password}) != nil {
			if left, err := os.ReadFile(logins.Path); err != nil || string(left) != string(data) {
				t.Errorf("refused, and yet %q became %q, %v", data, left, err)
			}
			return
		}
		var config struct {
			Auths map[string]json.RawMessage `json:"auths"`
		}
		text, err := os.ReadFile(logins.Path)
		if err == nil {
			err = json.Unmarshal(text, &config)
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if found, err := logins.Remove(host); err != nil || !found {
			t.Errorf("%q: the login for %q cannot be removed: %v", text, host, err)
		}
		if found, err := logins.Remove(host); err != nil || found {
			t.Errorf("%q: removed twice: %v", host, err)
		}
	})
}
