// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// proxy carries connections to another address, as cloud providers' database proxies do: what runs beside it knows
// localhost only.
func proxy(ctx context.Context, listen, to string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			if err := carry(c, to); err != nil {
				fmt.Fprintln(os.Stderr, "proxy:", err)
			}
		}()
	}
}

// carry carries one connection, each direction to its end.
func carry(from net.Conn, to string) error {
	defer from.Close()
	onward, err := net.DialTimeout("tcp", to, 3*time.Second)
	if err != nil {
		return err
	}
	defer onward.Close()
	done := make(chan error, 2)
	one := func(dst, src net.Conn) {
		_, err := io.Copy(dst, src)
		if half, ok := dst.(*net.TCPConn); ok {
			err = errors.Join(err, half.CloseWrite())
		}
		done <- err
	}
	go one(onward, from)
	go one(from, onward)
	return errors.Join(<-done, <-done)
}
