// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is what a unix socket's address can hold.
const maxSocketPath = 107

// Listen makes a unix socket that only root can open, replacing what a dead server left. A path that is too long for a
// socket's address is reached through the folder's descriptor.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	name, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the name may be the short one; Serve's owner removes the path
	return l, nil
}

// Dial connects to the socket at path, however long that is.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	name, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return (&net.Dialer{}).DialContext(ctx, "unix", name)
}

// shorten returns a name of path that fits a socket's address; it is valid until done is called.
func shorten(path string) (name string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { dir.Close() }, nil
}
