// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
)

// Keyring holds credentials by the registries, and paths below them, they are for. The zero value is empty and usable.
type Keyring struct {
	entries []entry
}

type entry struct {
	from  *corev1.Secret // nil: the node's own
	host  string         // may have * and ? within a label
	port  string
	path  string // "" or "/team/app"
	login login
}

// login is one entry of a docker config file.
type login struct {
	Username      string `json:"username,omitempty"`
	Password      string `json:"password,omitempty"`
	Auth          string `json:"auth,omitempty"` // base64 of user:password; Username and Password win when set
	IdentityToken string `json:"identitytoken,omitempty"`
	RegistryToken string `json:"registrytoken,omitempty"`
}

// AddSecret adds the credentials of a secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg.
// The error names the secret.
func (k *Keyring) AddSecret(s *corev1.Secret) error {
	var err error
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson:
		data, ok := s.Data[corev1.DockerConfigJsonKey]
		if !ok {
			return fmt.Errorf("secret %s/%s has no key %s", s.Namespace, s.Name, corev1.DockerConfigJsonKey)
		}
		err = k.addConfig(data, s)
	case corev1.SecretTypeDockercfg:
		data, ok := s.Data[corev1.DockerConfigKey]
		if !ok {
			return fmt.Errorf("secret %s/%s has no key %s", s.Namespace, s.Name, corev1.DockerConfigKey)
		}
		var logins map[string]login
		if err = json.Unmarshal(data, &logins); err == nil {
			err = k.add(logins, s)
		}
	default:
		return fmt.Errorf("secret %s/%s is of type %s, which contains no registry credentials: create it with kubectl create secret docker-registry", s.Namespace, s.Name, s.Type)
	}
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}

// AddDockerConfig adds what a docker config.json holds under "auths". Credential helpers it names are not called.
func (k *Keyring) AddDockerConfig(data []byte) error { return k.addConfig(data, nil) }

func (k *Keyring) addConfig(data []byte, from *corev1.Secret) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	var config struct {
		Auths map[string]login `json:"auths"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("not a docker config: %w", err)
	}
	return k.add(config.Auths, from)
}

// AddFile adds the docker config in a file, which need not be there.
func (k *Keyring) AddFile(path string) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = k.AddDockerConfig(data)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("docker config %s: %w", path, err)
	}
	return nil
}

// add keeps what can be read and reports the first entry that cannot.
func (k *Keyring) add(logins map[string]login, from *corev1.Secret) error {
	var first error
	for key, l := range logins {
		e, err := parseKey(key)
		if err == nil {
			e.login, err = l.decoded()
		}
		if err != nil {
			if first == nil {
				first = fmt.Errorf("entry %q: %w", key, err)
			}
			continue
		}
		e.from = from
		k.entries = append(k.entries, e)
	}
	// The most specific first; maps have no order of their own.
	slices.SortStableFunc(k.entries, func(a, b entry) int {
		return strings.Compare(b.host+":"+b.port+b.path, a.host+":"+a.port+a.path)
	})
	return first
}

func (l login) decoded() (login, error) {
	if l.Auth == "" || l.Username != "" || l.Password != "" {
		l.Auth = ""
		return l, nil
	}
	raw, err := base64.StdEncoding.DecodeString(l.Auth)
	if err != nil {
		// Some tools leave the padding out.
		if raw, err = base64.RawStdEncoding.DecodeString(l.Auth); err != nil {
			return l, fmt.Errorf("auth is not base64: %w", err)
		}
	}
	user, password, ok := strings.Cut(strings.TrimRight(string(raw), "\x00"), ":")
	if !ok {
		return l, fmt.Errorf("auth is not base64 of user:password")
	}
	l.Auth, l.Username, l.Password = "", user, password
	return l, nil
}

// parseKey reads what people write as a registry: registry.example, *.example:5000/team, https://index.docker.io/v1/.
func parseKey(key string) (entry, error) {
	rest := key
	for _, scheme := range []string{"https://", "http://"} {
		rest = strings.TrimPrefix(rest, scheme)
	}
	hostport, p, _ := strings.Cut(rest, "/")
	if hostport == "" {
		return entry{}, fmt.Errorf("it names no registry")
	}
	// The API version, as docker writes it, is no part of a repository's path.
	for _, v := range []string{"v1", "v2"} {
		if p == v {
			p = ""
		} else {
			p = strings.TrimPrefix(p, v+"/")
		}
	}
	p = strings.Trim(p, "/")
	if p != "" {
		p = "/" + p
	}
	host, port := splitPort(hostport)
	if _, err := path.Match(host, "x"); err != nil {
		return entry{}, fmt.Errorf("bad pattern: %w", err)
	}
	return entry{host: host, port: port, path: p}, nil
}

func splitPort(hostport string) (host, port string) {
	if h, p, err := net.SplitHostPort(hostport); err == nil {
		return h, p
	}
	return strings.Trim(hostport, "[]"), ""
}

// dockerHub is how docker's own tools name the registry whose images are written docker.io/…
const dockerHub = "index.docker.io"

// For gives all credentials that fit the image, in the order they are to be tried. A host matches label by label, with *
// and ? not crossing a dot; the port must be the same; the path must be a prefix. Equal credentials come once.
func (k *Keyring) For(ref imagename.Reference) []*runtimeapi.AuthConfig {
	var out []*runtimeapi.AuthConfig
	for _, e := range k.fitting(ref) {
		out = append(out, e.login.auth())
	}
	return out
}

func (l login) auth() *runtimeapi.AuthConfig {
	return &runtimeapi.AuthConfig{Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken,
		RegistryToken: l.RegistryToken}
}

// fitting are the entries that fit the image, one for equal credentials.
func (k *Keyring) fitting(ref imagename.Reference) (out []entry) {
	seen := map[login]bool{}
	hosts := []string{ref.Registry}
	if ref.Registry == "docker.io" {
		hosts = append(hosts, dockerHub)
	}
	for _, e := range k.entries {
		if seen[e.login] || !slices.ContainsFunc(hosts, func(h string) bool { return e.fits(h, "/"+ref.Repository) }) {
			continue
		}
		seen[e.login] = true
		out = append(out, e)
	}
	return out
}

func (e entry) fits(registry, repository string) bool {
	host, port := splitPort(registry)
	if port != e.port || !strings.HasPrefix(repository, e.path) {
		return false
	}
	want, have := strings.Split(e.host, "."), strings.Split(host, ".")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(want[i], have[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
