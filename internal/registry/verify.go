// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
)

// verifyPatience is how long a registry is waited for.
const verifyPatience = time.Minute

// Verify asks a registry whether it takes a login. asked is false if it lets everybody in, so that nobody knows.
// hostsDir is the folder of registry settings.
func Verify(ctx context.Context, hostsDir, host string, login Login) (asked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, verifyPatience)
	defer cancel()
	settings := config.HostOptions{
		HostDir:     config.HostDirFromRoot(hostsDir),
		Credentials: func(string) (string, string, error) { return login.User, login.Password, nil },
	}
	hosts, err := config.ConfigureHosts(ctx, settings)(host)
	if err != nil {
		return false, fmt.Errorf("settings of registry %s in %s: %w", host, hostsDir, err)
	}
	if len(hosts) == 0 {
		return false, fmt.Errorf("settings of registry %s in %s name no server", host, hostsDir)
	}
	own := hosts[len(hosts)-1] // mirrors come first
	code, asked, err := ping(ctx, own)
	switch {
	case err != nil && refused(err), code == http.StatusUnauthorized, code == http.StatusForbidden:
		return asked, fmt.Errorf("registry %s does not take user %q with this password", host, login.User)
	case err != nil:
		return asked, unreached(hostsDir, host, err)
	case code != http.StatusOK:
		return asked, fmt.Errorf("%s does not answer as a registry: %d %s at %s://%s%s/", host, code,
			http.StatusText(code), own.Scheme, own.Host, own.Path)
	}
	return asked, nil
}

// ping asks for the root of the registry's API, and again with the login if it wants one.
func ping(ctx context.Context, h docker.RegistryHost) (code int, asked bool, err error) {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.Scheme+"://"+h.Host+h.Path+"/", nil)
		if err != nil {
			return 0, asked, err
		}
		for name, values := range h.Header {
			req.Header[name] = values
		}
		if err := h.Authorizer.Authorize(ctx, req); err != nil {
			return 0, asked, err
		}
		resp, err := h.Client.Do(req)
		if err != nil {
			return 0, asked, err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized || asked {
			return resp.StatusCode, asked, nil
		}
		asked = true
		if err := h.Authorizer.AddResponses(ctx, []*http.Response{resp}); err != nil {
			return 0, asked, err
		}
	}
}

// refused recognizes by its text that the token server rejected the login.
func refused(err error) bool {
	text := err.Error()
	return strings.Contains(text, "401 Unauthorized") || strings.Contains(text, "403 Forbidden")
}

func unreached(hostsDir, host string, err error) error {
	if strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return fmt.Errorf("registry %s %s", host, PlainHTTP(hostsDir, host))
	}
	if strings.Contains(err.Error(), "first record does not look like a TLS handshake") {
		return fmt.Errorf("registry %s does not speak TLS: check its port (%w)", host, err)
	}
	return fmt.Errorf("registry %s cannot be reached: %w", host, err)
}

// PlainHTTP says what a registry without TLS needs.
func PlainHTTP(hostsDir, host string) string {
	return fmt.Sprintf("speaks plain HTTP, not HTTPS: if passwords and images may be read on the way there, write the line\n  server = \"http://%s\"\ninto %s, and try again",
		host, filepath.Join(hostsDir, host, "hosts.toml"))
}
