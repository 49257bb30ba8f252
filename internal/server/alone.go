// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/record"
	"github.com/wherryproject/wherry/internal/node/staticpods"
	"github.com/wherryproject/wherry/internal/pki"
)

// StaticOptions say where the node has static pods from, in the words of the kubelet's flags.
type StaticOptions struct {
	Path       string        // of a folder of manifests, or of one
	PathEvery  time.Duration // 0: 20 s
	URL        string        // of a manifest
	URLHeaders []string      // NAME:VALUE
	URLEvery   time.Duration // 0: 20 s
}

// complete makes the path absolute.
func (o StaticOptions) complete() (StaticOptions, error) {
	var err error
	if o.Path != "" {
		if o.Path, err = filepath.Abs(o.Path); err != nil {
			err = fmt.Errorf("--pod-manifest-path: %w", err)
		}
	}
	return o, err
}

func (o StaticOptions) validate() error {
	if o.URL != "" {
		u, err := url.Parse(o.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("--manifest-url: %q is not a URL that begins with http:// or https://", o.URL)
		}
	} else if len(o.URLHeaders) > 0 {
		return errors.New("--manifest-url-header is for --manifest-url; give both")
	}
	if o.PathEvery < 0 || o.URLEvery < 0 {
		return errors.New("--file-check-frequency and --http-check-frequency must not be negative")
	}
	_, err := o.headers()
	return err
}

func (o StaticOptions) headers() (http.Header, error) {
	h := http.Header{}
	for _, line := range o.URLHeaders {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("--manifest-url-header: %q is not of the form NAME:VALUE", line)
		}
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return h, nil
}

func (o StaticOptions) pods() node.StaticPods {
	h, _ := o.headers() // validate has looked
	return node.StaticPods{Folder: o.Path, FolderEvery: o.PathEvery, URL: o.URL, URLHeader: h, URLEvery: o.URLEvery}
}

// agentOnly reports whether there is no API server in this process.
func (o Options) agentOnly() bool { return o.Join != "" || o.Standalone }

// aloneComponents is the agent without any API server.
func (s *Server) aloneComponents() []component {
	return []component{
		{name: "folder", start: s.startFolder, stop: s.stopFolder},
		{name: "checks", after: []string{"folder"}, start: s.check},
		{name: "identity", after: []string{"checks"}, start: s.alone},
		{name: "runtime", after: []string{"checks"}, start: s.startRuntime, stop: s.stopRuntime},
		{name: "agent", after: []string{"runtime", "identity"}, start: s.startAgent, stop: s.stopAgent},
		{name: "sockets", after: []string{"runtime", "identity"}, start: s.startSockets, stop: s.stopSockets},
	}
}

// alone makes what the node's API needs where nobody else could: a CA of its own, and a certificate for the machine's
// administrator.
func (s *Server) alone(context.Context) error {
	dir := PKI(s.opts.DataDir)
	own, err := pki.LoadOrCreate(dir, "wherry-agent")
	if err != nil {
		return err
	}
	cert, key, err := own.Client("admin", []string{user.SystemPrivilegedGroup}, adminLife)
	if err != nil {
		return err
	}
	err = errors.Join(pki.WriteFile(filepath.Join(dir, "node-admin.crt"), cert, 0o600),
		pki.WriteFile(filepath.Join(dir, "node-admin.key"), key, 0o600))
	if err != nil {
		return err
	}
	s.parts.cluster = cluster{clientCAs: own.Pool(), serving: own}
	return nil
}

// adminLife is how long that certificate lives; every start makes another.
const adminLife = 365 * 24 * time.Hour

// recorded are the pods that this node remembers and that its store ought to have: static pods are in none.
func (s *Server) recorded() ([]record.Record, error) {
	static, err := staticpods.UIDs(node.StaticFolder(s.opts.DataDir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	all, err := record.List(s.podsFolder())
	if err != nil {
		return nil, err
	}
	var out []record.Record
	for _, r := range all {
		if !static[r.UID] {
			out = append(out, r)
		}
	}
	return out, nil
}
