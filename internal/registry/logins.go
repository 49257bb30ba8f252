// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// dockerHubKey is how docker writes its own registry into its config.
const dockerHubKey = "https://index.docker.io/v1/"

// Logins is a docker config.json. Nobody else may write it meanwhile.
type Logins struct{ Path string }

// Login is a user of a registry.
type Login struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// Host is a registry's name without what people put around it: https:// and a slash at the end. One with a path is
// refused: a login is for all of a registry.
func Host(name string) (string, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://"), "/")
	if host == strings.TrimSuffix(strings.TrimPrefix(dockerHubKey, "https://"), "/") {
		host = "docker.io"
	}
	if host == "" || strings.ContainsAny(host, "/@ ") {
		return "",
			fmt.Errorf("%q is not a registry: name its host alone, and its port if it has one, for example registry.example.com:5000", name)
	}
	switch host = strings.ToLower(host); host {
	case "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		return "docker.io", nil
	}
	return host, nil
}

// keyOf is the registry's entry in the file.
func keyOf(host string) string {
	if host == "docker.io" {
		return dockerHubKey
	}
	return host
}

// Set keeps a login, in place of one that was there for the registry.
func (l Logins) Set(host string, login Login) error {
	return l.edit(func(auths map[string]json.RawMessage) (bool, error) {
		entry, err := json.Marshal(map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(login.User + ":" +
			login.Password))})
		if err != nil {
			return false, err
		}
		forget(auths, host)
		auths[keyOf(host)] = entry
		return true, nil
	})
}

// Remove forgets the login of a registry, and reports whether there was one.
func (l Logins) Remove(host string) (found bool, err error) {
	err = l.edit(func(auths map[string]json.RawMessage) (bool, error) {
		found = forget(auths, host)
		return found, nil
	})
	return found, err
}

// forget removes what is there for a registry, by whichever spelling: of two, a pull would take any.
func forget(auths map[string]json.RawMessage, host string) (found bool) {
	for key := range auths {
		if of, err := Host(key); key == keyOf(host) || err == nil && of == host {
			found = true
			delete(auths, key)
		}
	}
	return found
}

// edit changes the logins in the file, which need not be there, and writes it if change says so.
func (l Logins) edit(change func(map[string]json.RawMessage) (bool, error)) error {
	config := map[string]json.RawMessage{}
	auths := map[string]json.RawMessage{}
	data, err := os.ReadFile(l.Path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(bytes.TrimSpace(data)) > 0 {
		if err = json.Unmarshal(data, &config); err == nil {
			err = spelled(config)
		}
		if err == nil && config["auths"] != nil {
			err = json.Unmarshal(config["auths"], &auths)
		}
		if err != nil {
			return fmt.Errorf("%s is not a docker config, and was left as it is: %w", l.Path, err)
		}
	}
	if config == nil { // the file is the word null
		config = map[string]json.RawMessage{}
	}
	if auths == nil { // "auths": null
		auths = map[string]json.RawMessage{}
	}
	if write, err := change(auths); err != nil || !write {
		return err
	}
	if config["auths"], err = json.Marshal(auths); err != nil {
		return err
	}
	text, err := json.MarshalIndent(config, "", "\t")
	if err != nil {
		return err
	}
	return l.replace(append(text, '\n'))
}

// spelled refuses a key that docker, which does not mind case, would take for that of the logins.
func spelled(config map[string]json.RawMessage) error {
	for key := range config {
		if key != "auths" && strings.EqualFold(key, "auths") {
			return fmt.Errorf("it has %q; call it %q", key, "auths")
		}
	}
	return nil
}

// replace writes the file as a whole. A temporary file is its owner's alone from the beginning.
func (l Logins) replace(text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(l.Path), ".config.json.*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), l.Path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
