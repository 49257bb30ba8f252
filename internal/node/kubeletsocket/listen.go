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
	if err := removeSockets(folder); err != nil {
		return nil, err
	}
	// Under another name first: whoever waits for the socket to be made connects at once, and one that is made is not
	// listened on yet.
	fresh := filepath.Join(folder, "."+Name)
	l, err := socket.Listen(fresh)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &listener{l, path}, nil
}

// removeSockets removes the sockets of programs that have registered with an earlier process, as a kubelet does when it
// starts: many programs learn by that, and by nothing else, that they have to register again.
func removeSockets(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type() != fs.ModeSocket {
			continue
		}
		if err := os.Remove(filepath.Join(folder, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
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
