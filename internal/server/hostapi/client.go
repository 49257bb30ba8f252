// SPDX-License-Identifier: Apache-2.0

package hostapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/registry"
	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

// Client is the asking side.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient returns a client for the server behind a socket. It does not connect.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return socket.Dial(ctx, path) }
	return &Client{path, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Socket is the path of the socket.
func (c *Client) Socket() string { return c.socket }

// Info asks who serves.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var out Info
	return out, c.call(ctx, "GET", "/v1/server", nil, nil, &out)
}

// Drain has the node end its pods and take no others, and returns when they have ended; with on false it takes pods
// again.
func (c *Client) Drain(ctx context.Context, on bool) error {
	method := "POST"
	if !on {
		method = "DELETE"
	}
	return c.call(ctx, method, "/v1/drain", nil, nil, nil)
}

// List returns all images of the node.
func (c *Client) List(ctx context.Context) ([]Image, error) {
	var out []Image
	return out, c.call(ctx, "GET", "/v1/images", nil, nil, &out)
}

// Import sends an archive and returns the names of its images.
func (c *Client) Import(ctx context.Context, archive io.Reader) ([]string, error) {
	var out []string
	return out, c.call(ctx, "POST", "/v1/images/import", nil, archive, &out)
}

// Pull fetches an image from its registry, with a login, or if that is nil with those of the node.
func (c *Client) Pull(ctx context.Context, ref string, login *registry.Login) error {
	body, err := bodyOf(login)
	if err != nil {
		return err
	}
	return c.call(ctx, "POST", "/v1/images/pull", url.Values{"ref": {ref}}, body, nil)
}

// bodyOf carries a login, which has no place in an address.
func bodyOf(login *registry.Login) (io.Reader, error) {
	if login == nil {
		return nil, nil
	}
	text, err := json.Marshal(login)
	return bytes.NewReader(text), err
}

// Login lets a registry judge a login and keeps it for the node.
func (c *Client) Login(ctx context.Context, name string, login registry.Login) (LoggedIn, error) {
	var out LoggedIn
	body, err := bodyOf(&login)
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, "POST", "/v1/registries/login", url.Values{"registry": {name}}, body, &out)
}

// Logout forgets the node's login at a registry.
func (c *Client) Logout(ctx context.Context, name string) (LoggedIn, error) {
	var out LoggedIn
	return out, c.call(ctx, "POST", "/v1/registries/logout", url.Values{"registry": {name}}, nil, &out)
}

// Inspect returns all that is known of an image.
func (c *Client) Inspect(ctx context.Context, ref string) (Image, error) {
	var out Image
	return out, c.call(ctx, "GET", "/v1/images/inspect", url.Values{"ref": {ref}}, nil, &out)
}

// Tag gives an image a further name and returns it spelled out.
func (c *Client) Tag(ctx context.Context, ref, name string) (string, error) {
	var out []string
	if err := c.call(ctx, "POST", "/v1/images/tag", url.Values{"ref": {ref}, "as": {name}}, nil, &out); err != nil {
		return "", err
	}
	return strings.Join(out, " "), nil
}

// Prune removes the images without a name that no container needs, with all those with one too, and returns them.
func (c *Client) Prune(ctx context.Context, all bool) ([]Image, error) {
	var out []Image
	return out, c.call(ctx, "POST", "/v1/images/prune", url.Values{"all": {fmt.Sprint(all)}}, nil, &out)
}

// Remove removes an image with all its names and returns them.
func (c *Client) Remove(ctx context.Context, ref string, force bool) ([]string, error) {
	var out []string
	return out, c.call(ctx, "DELETE", "/v1/images", url.Values{"ref": {ref}, "force": {fmt.Sprint(force)}}, nil, &out)
}

// Export writes the named images as one archive.
func (c *Client) Export(ctx context.Context, archive io.Writer, refs []string) error {
	resp, err := c.do(ctx, "GET", "/v1/images/export", url.Values{"ref": refs}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(archive, resp.Body); err != nil {
		return fmt.Errorf("the server closed the connection: %w", err)
	}
	if msg := resp.Trailer.Get(errorTrailer); msg != "" {
		return errors.New(msg)
	}
	return nil
}

func (c *Client) call(ctx context.Context, method, path string, query url.Values, body io.Reader, out any) error {
	resp, err := c.do(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// start says how to start a server here. Whoever has named no folder may also have meant another one.
func (c *Client) start() string {
	dir := filepath.Dir(c.socket)
	text := datadir.Start(dir)
	if dir == datadir.Default {
		text += ", or give its folder with --data-dir"
	}
	return text
}

// do returns only answers that are fine.
func (c *Client) do(ctx context.Context, method, path string, query url.Values,
	body io.Reader) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: "wherry", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("only root can use the server's socket %s: run this command with sudo", c.socket)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("no server is listening on %s: start one with %s", c.socket, c.start())
	case err != nil:
		if at, ok := errors.AsType[*url.Error](err); ok { // of no use to a person: the address is made up
			err = at.Err
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("the server ended before it had answered: start it again, and try again")
		}
		return nil, err
	case resp.StatusCode >= 300:
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		return nil, errors.New(strings.TrimSpace(string(text)))
	}
	return resp, nil
}
