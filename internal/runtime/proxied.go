// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/core/snapshots/proxy"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/errdefs"
	"github.com/containerd/plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// ParseSnapshotter reads what a Config's Snapshotter may be: the name of one that is built in, or NAME=SOCKET of one
// that is a program of its own. (Pure.)
func ParseSnapshotter(s string) (name, socket string, err error) {
	name, socket, own := strings.Cut(s, "=")
	builtIn := name == Overlayfs || name == Native
	switch {
	case !own && builtIn:
		return name, "", nil
	case !own:
		return "", "",
			fmt.Errorf("snapshotter %q: use %s, %s, or NAME=SOCKET of a program, for example stargz=/run/containerd-stargz-grpc/containerd-stargz-grpc.sock",
				s, Overlayfs, Native)
	case builtIn:
		return "", "", fmt.Errorf("snapshotter %q: %s is built in and has no socket", s, name)
	case !regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`).MatchString(name):
		return "", "", fmt.Errorf("snapshotter %q: the name %q is not of lower-case letters and digits", s, name)
	}
	socket = strings.TrimPrefix(socket, "unix://")
	if !filepath.IsAbs(socket) {
		return "", "", fmt.Errorf("snapshotter %q: its socket must be an absolute path", s)
	}
	return name, socket, nil
}

// dialTime is how long a snapshotter may take to take a connection: it is on this machine.
const dialTime = 5 * time.Second

// checkSnapshotter finds out whether anybody is at a snapshotter's socket.
func checkSnapshotter(ctx context.Context, name, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err == nil {
		return conn.Close()
	}
	what := "does not answer"
	if errors.Is(err, os.ErrNotExist) {
		what = "is not there"
	}
	return fmt.Errorf("the socket of snapshotter %s %s: start that snapshotter first, or choose another with --snapshotter: %w",
		name, what, err)
}

// proxied is a snapshotter that is a program of its own.
type proxied struct {
	snapshots.Snapshotter
	conn *grpc.ClientConn
}

// Close implements io.Closer.
func (p *proxied) Close() error { return p.conn.Close() }

// Cleanup implements snapshots.Cleaner.
func (p *proxied) Cleanup(ctx context.Context) error {
	c, ok := p.Snapshotter.(snapshots.Cleaner)
	if !ok {
		return errdefs.ErrNotImplemented
	}
	return c.Cleanup(ctx)
}

// proxyPlugin is the plug-in by which containerd reaches a snapshotter at its socket, as proxy_plugins in its
// configuration make one. root stands for its disk, which nobody tells.
func proxyPlugin(name, socket, root string) plugin.Registration {
	return plugin.Registration{Type: plugins.SnapshotPlugin, ID: name,
		InitFn: func(ic *plugin.InitContext) (any, error) {
			if err := os.MkdirAll(root, 0o700); err != nil {
				return nil, err
			}
			conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
			if err != nil {
				return nil, err
			}
			ic.Meta.Exports = map[string]string{"address": socket, plugins.SnapshotterRootDir: root,
				"enable_remote_snapshot_annotations": "true"}
			return &proxied{proxy.NewSnapshotter(snapshotsapi.NewSnapshotsClient(conn), name), conn}, nil
		}}
}
