// SPDX-License-Identifier: Apache-2.0

package serverkind

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Mark is in the version of every server of Wherry's, after Kubernetes' own.
const Mark = "+wherry"

// patience bounds the wait for a server's version.
const patience = 10 * time.Second

// maxVersion bounds what is read of it.
const maxVersion = 64 << 10

// Is decides by a server's version, as /version gives it, whether it is Wherry's.
func Is(version []byte) bool {
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	return json.Unmarshal(version, &v) == nil && strings.Contains(v.GitVersion, Mark)
}

// Ask asks the server whose API is at base whether it is Wherry's.
func Ask(ctx context.Context, client *http.Client, base *url.URL) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return false, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("the server does not tell its version: %s", resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxVersion))
	if err != nil {
		return false, err
	}
	return Is(text), nil
}

// Serves asks the server whose API is at base for an API's path, such as /apis/example.com/v1, and returns the status
// of its answer: 200 where it is served.
func Serves(ctx context.Context, client *http.Client, base *url.URL, path string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
