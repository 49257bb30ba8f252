// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
	"github.com/containerd/containerd/v2/core/transfer"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// resolver reaches registries by their settings and what the CRI was given to log in.
func (p *Puller) resolver(ctx context.Context, auth *criapi.AuthConfig, w *watch) remotes.Resolver {
	opts := config.HostOptions{
		HostDir:     hostDir(p.HostsDir),
		Credentials: func(host string) (string, string, error) { return login(auth, host) },
		UpdateClient: func(c *http.Client) error {
			c.Transport = &watchedTransport{c.Transport, w}
			return nil
		},
	}
	return docker.NewResolver(docker.ResolverOptions{Hosts: config.ConfigureHosts(ctx, opts)})
}

// hostDir finds a registry's settings in folders, of which there may be several, as containerd's config_path has them.
func hostDir(folders string) func(string) (string, error) {
	return func(host string) (dir string, err error) {
		for _, f := range filepath.SplitList(folders) {
			dir, err = config.HostDirFromRoot(f)(host)
			if err != nil && !errdefs.IsNotFound(err) || dir != "" {
				break
			}
		}
		return dir, err
	}
}

// login is what the CRI gave to log in at a host. (Pure.)
func login(auth *criapi.AuthConfig, host string) (user, secret string, err error) {
	if auth.GetServerAddress() != "" {
		u, err := url.Parse(auth.GetServerAddress())
		if err != nil {
			return "", "", fmt.Errorf("parse server address: %w", err)
		}
		if host != u.Host {
			return "", "", nil
		}
	}
	switch {
	case auth.GetUsername() != "":
		return auth.GetUsername(), auth.GetPassword(), nil
	case auth.GetIdentityToken() != "":
		return "", auth.GetIdentityToken(), nil
	case auth.GetAuth() == "":
		return "", "", nil
	}
	both, err := base64.StdEncoding.DecodeString(auth.GetAuth())
	if err != nil {
		return "", "", err
	}
	user, secret, ok := strings.Cut(string(both), ":")
	if !ok {
		return "", "", errors.New("invalid auth: it is not base64 of user:password")
	}
	return user, strings.Trim(secret, "\x00"), nil
}

// once is a Resolver that asks for a name once: containerd's client would ask again for what was asked before.
type once struct {
	remotes.Resolver
	asked string
	name  string
	desc  ocispec.Descriptor
}

// Resolve implements remotes.Resolver.
func (o *once) Resolve(ctx context.Context, ref string) (string, ocispec.Descriptor, error) {
	if o.asked == ref {
		return o.name, o.desc, nil
	}
	name, desc, err := o.Resolver.Resolve(ctx, ref)
	if err == nil {
		o.asked, o.name, o.desc = ref, name, desc
	}
	return name, desc, err
}

// SetOptions implements remotes.ResolverWithOptions.
func (o *once) SetOptions(opts ...transfer.ImageResolverOption) {
	if r, ok := o.Resolver.(remotes.ResolverWithOptions); ok {
		r.SetOptions(opts...)
	}
}

// watch ends a pull whose registry sends nothing while it is waited for.
type watch struct {
	stop    func()
	limit   time.Duration
	gaveUp  atomic.Pointer[string] // why
	waiting atomic.Int32           // requests under way
	bytes   atomic.Int64           // that have come
	last    atomic.Int64           // when something came last, or the waiting began, in nanoseconds since began
	began   time.Time
}

// watchProgress returns a context that ends when nothing has come for a while, or with stop.
func watchProgress(ctx context.Context, limit time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{stop: cancel, limit: limit, began: time.Now()}
	go func() {
		var pace pace
		tick := time.NewTicker(max(limit/4, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if why := w.judge(&pace, time.Since(w.began)); why != "" {
				w.gaveUp.Store(&why)
				cancel()
				return
			}
		}
	}()
	return ctx, w
}

// A registry that sends next to nothing keeps its pull, and what others want of the same image, as one does that hangs.
const (
	paceLimits = 5        // a pace is taken over so many limits
	leastBytes = 64 << 10 // that come in them
)

// pace is what had come when it was begun to be measured.
type pace struct {
	since time.Duration
	bytes int64
}

// judge says why to give up, or "".
func (w *watch) judge(p *pace, now time.Duration) string {
	if w.waiting.Load() == 0 {
		*p = pace{now, w.bytes.Load()}
		return ""
	}
	if now-time.Duration(w.last.Load()) > w.limit {
		return fmt.Sprintf("the registry sent nothing for %s", w.limit)
	}
	if span := now - p.since; span > paceLimits*w.limit {
		n := w.bytes.Load() - p.bytes
		if n < leastBytes {
			return fmt.Sprintf("the registry sent %d bytes in %s", n, span.Round(time.Second))
		}
		*p = pace{now, w.bytes.Load()}
	}
	return ""
}

func (w *watch) came(n int) {
	w.bytes.Add(int64(n))
	w.last.Store(int64(time.Since(w.began)))
}

// explain says why a pull was given up, if it was.
func (w *watch) explain(err error) error {
	why := w.gaveUp.Load()
	if why == nil {
		return err
	}
	return fmt.Errorf("%w: %s: %w", err, *why, context.Canceled)
}

// watchedTransport tells a watch of what comes.
type watchedTransport struct {
	http.RoundTripper
	watch *watch
}

// RoundTrip implements http.RoundTripper.
func (t *watchedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.watch.waiting.Add(1) == 1 {
		t.watch.came(0)
	}
	resp, err := t.RoundTripper.RoundTrip(req)
	if err != nil {
		t.watch.waiting.Add(-1)
		return nil, err
	}
	t.watch.came(0)
	resp.Body = &watchedBody{ReadCloser: resp.Body, watch: t.watch}
	return resp, nil
}

type watchedBody struct {
	io.ReadCloser
	watch *watch
	ended atomic.Bool
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.came(n)
	}
	if err != nil {
		b.done() // it is closed when what was read is on the disk, and that is not the registry's time
	}
	return n, err
}

func (b *watchedBody) done() {
	if !b.ended.Swap(true) {
		b.watch.waiting.Add(-1)
	}
}

// Close implements io.Closer.
func (b *watchedBody) Close() error {
	b.done()
	return b.ReadCloser.Close()
}
