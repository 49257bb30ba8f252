// SPDX-License-Identifier: Apache-2.0

package kubeletsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

// Name is that of every such socket, in a folder of its own.
const Name = "kubelet.sock"

// ErrOccupied says that another program, most likely a kubelet, serves the socket.
var ErrOccupied = errors.New("another program serves it, most likely a kubelet")

// dialTimeout is long enough for a kubelet that is busy.
const dialTimeout = 2 * time.Second

// Listen opens the socket in folder, which it makes. Closing the listener removes the socket.
func Listen(folder string) (net.Listener, error) {
	path := filepath.Join(folder, Name)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	if c, err := Dial(ctx, path); err == nil {
		return nil, errors.Join(fmt.Errorf("socket %s: %w", path, ErrOccupied), c.Close())
	}
	l, err := socket.Listen(path)
	if err != nil {
		return nil, err
	}
	return &listener{l, path}, nil
}

// listener removes its socket when it is closed.
type listener struct {
	net.Listener
	path string
}

// Close is part of [net.Listener].
func (l *listener) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Listener.Close())
}

// Remove removes a socket that nobody serves, and its folder if there is nothing else in it.
func Remove(folder string) error {
	path := filepath.Join(folder, Name)
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	if c, err := Dial(ctx, path); err == nil {
		return c.Close() // it is somebody else's
	}
	for _, left := range []string{path, folder} {
		err := os.Remove(left)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// Dial connects to a socket, also where its path is longer than the kernel takes.
func Dial(ctx context.Context, path string) (net.Conn, error) { return socket.Dial(ctx, path) }
