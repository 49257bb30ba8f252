// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// answerWithin bounds how long an engine may take to say whether it has the image. Docker packs it before its first
	// byte, which takes a while for large ones.
	answerWithin = 10 * time.Minute
	// maxMessage bounds what is read of an error.
	maxMessage = 64 << 10
)

// openDocker asks Docker's API for what docker save writes (Engine API, GET /images/get).
func openDocker(ctx context.Context, image string, o Options) (io.ReadCloser, error) {
	usual := []string{"/var/run/docker.sock"}
	if uid := o.Getenv("SUDO_UID"); uid != "" { // a rootless Docker of whoever called sudo
		usual = append(usual, "/run/user/"+uid+"/docker.sock")
	}
	paths, err := sockets(o, "DOCKER_HOST", usual...)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, "Docker", "DOCKER_HOST", paths)
	if err != nil {
		return nil, err
	}
	body, err := getDocker(ctx, conn, image)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("Docker (%s): %w", conn.RemoteAddr(), err) //nolint:staticcheck // a name
	}
	return &both{body, conn}, nil
}

// getDocker sends the request over a connection of its own.
func getDocker(ctx context.Context, conn net.Conn, image string) (io.ReadCloser, error) {
	transport := &http.Transport{
		DialContext:           func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: answerWithin,
	}
	address := "http://docker/images/get?" + url.Values{"names": {image}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp.Body, nil
}

// refusal is what Docker says of a request that it does not answer.
func refusal(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	var said struct{ Message string }
	if json.Unmarshal(text, &said) != nil || said.Message == "" {
		return errors.New(resp.Status)
	}
	if resp.StatusCode == http.StatusNotFound {
		said.Message += " (docker image ls lists those that there are)"
	}
	return errors.New(said.Message)
}

// dial connects to the first of the sockets behind which something listens.
func dial(ctx context.Context, engine, variable string, paths []string) (net.Conn, error) {
	var d net.Dialer
	var all []error
	for _, path := range paths {
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return conn, nil
		}
		all = append(all, err)
		if !errors.Is(err, os.ErrNotExist) {
			break // this one is meant: the others would be a surprise
		}
	}
	if errors.Is(all[len(all)-1], os.ErrNotExist) {
		return nil, fmt.Errorf("%s is not here: there is no socket %s (--address or %s names another)",
			engine, strings.Join(paths, " nor "), variable)
	}
	return nil, fmt.Errorf("%s: %w", engine, all[len(all)-1])
}

// both closes an answer and its connection.
type both struct {
	io.ReadCloser
	conn net.Conn
}

// Close closes both.
func (b *both) Close() error {
	return errors.Join(b.ReadCloser.Close(), ignoreClosed(b.conn.Close()))
}

// ignoreClosed drops that a connection is closed already.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
