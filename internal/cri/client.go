// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxMessage bounds one gRPC message, as the kubelet does: a list of some thousand containers, or the output of an
// exec.
const maxMessage = 16 << 20

// Client talks to one container runtime. It is safe for concurrent use. Make one with [Dial], [FromConn] or [New].
type Client struct {
	Runtime runtimeapi.RuntimeServiceClient
	Images  runtimeapi.ImageServiceClient

	conn     *grpc.ClientConn // nil when made by New
	timeout  time.Duration    // of one request
	endpoint string           // as the user gave it; for messages
	logger   *slog.Logger
	ended    *endedCache
	through  []grpc.UnaryClientInterceptor
}

// Option changes a Client at its making.
type Option func(*Client)

// WithLogger sets where the client logs; without it, it is silent.
func WithLogger(l *slog.Logger) Option { return func(c *Client) { c.logger = l } }

// WithInterceptor makes all calls of [Dial]'s connection, except streams, go through f.
func WithInterceptor(f grpc.UnaryClientInterceptor) Option {
	return func(c *Client) { c.through = append(c.through, f) }
}

// New makes a client from the two generated ones, so that a fake can be called without a connection. The runtime client
// is wrapped with the checks of this package (PID-08, PID-09).
func New(rt runtimeapi.RuntimeServiceClient, images runtimeapi.ImageServiceClient, opts ...Option) *Client {
	c := &Client{
		Runtime: &guard{RuntimeServiceClient: rt},
		Images:  images,
		logger:  slog.New(slog.DiscardHandler),
		ended:   newEndedCache(),
		timeout: DefaultRequestTimeout,
	}
	for _, o := range opts {
		o(c)
	}
	return c
}

// FromConn makes a client on an existing connection, say bufconn to the embedded runtime. [Client.Close] closes it.
func FromConn(conn *grpc.ClientConn, opts ...Option) *Client {
	c := New(nil, nil, opts...)
	c.conn, c.endpoint = conn, conn.Target()
	c.callThrough(c.limited())
	return c
}

// limited is the connection with the time that its calls may take.
func (c *Client) limited() grpc.ClientConnInterface { return &limitedConn{c.conn, c.timeout} }

// callThrough makes calls go through conn.
func (c *Client) callThrough(conn grpc.ClientConnInterface) {
	c.Runtime = &guard{RuntimeServiceClient: runtimeapi.NewRuntimeServiceClient(conn)}
	c.Images = runtimeapi.NewImageServiceClient(conn)
}

// Dial connects to the runtime at endpoint ("unix:///run/containerd/containerd.sock", or the bare path) and asks its
// version. It does not wait for a runtime that is not there: the error says so, and what to do.
func Dial(ctx context.Context, endpoint string, opts ...Option) (*Client, error) {
	path, err := ParseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if err := checkSocket(endpoint, path); err != nil {
		return nil, err
	}
	var wanted Client
	for _, o := range opts {
		o(&wanted)
	}
	conn, err := grpc.NewClient("passthrough:///"+path,
		grpc.WithChainUnaryInterceptor(wanted.through...),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	)
	if err != nil {
		return nil, fmt.Errorf("container runtime endpoint %s: %w", endpoint, err)
	}
	c := FromConn(conn, opts...)
	c.endpoint = endpoint
	if _, err := c.Version(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close closes the connection. Calls under way fail; channels of Nudges end with their own contexts.
func (c *Client) Close() error {
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

// Version asks the runtime for its name and version and fails clearly when there is no runtime, or one that does not
// speak CRI v1.
func (c *Client) Version(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	v, err := c.Runtime.Version(ctx, &runtimeapi.VersionRequest{})
	switch {
	case Unimplemented(err):
		return nil,
			fmt.Errorf("the program at %s does not speak CRI v1: use containerd 1.6 or later with its CRI plug-in enabled, or CRI-O 1.20 or later: %w", c.where(), err)
	case Unavailable(err):
		return nil, fmt.Errorf("the container runtime at %s does not respond: is it running? %w", c.where(), err)
	case err != nil:
		return nil, fmt.Errorf("asking the container runtime at %s for its version: %w", c.where(), err)
	case v.RuntimeApiVersion != "" && v.RuntimeApiVersion != "v1":
		return nil, fmt.Errorf("the container runtime at %s (%s %s) speaks CRI %q, Wherry needs v1",
			c.where(), v.RuntimeName, v.RuntimeVersion, v.RuntimeApiVersion)
	}
	return v, nil
}

func (c *Client) where() string {
	if c.endpoint == "" {
		return "this connection"
	}
	return c.endpoint
}

// ParseEndpoint gives the socket's path from "unix:///path" or "/path". Other kinds of endpoint are refused: CRI is
// served on local sockets.
func ParseEndpoint(endpoint string) (string, error) {
	path, isURL := strings.CutPrefix(endpoint, "unix://")
	switch {
	case endpoint == "":
		return "", errors.New(`the container runtime endpoint is empty: give "unix:///path/to/socket"`)
	case !isURL && strings.Contains(endpoint, "://"):
		return "",
			fmt.Errorf(`container runtime endpoint %q: only unix sockets are supported: "unix:///path/to/socket"`,
				endpoint)
	case !strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0):
		return "",
			fmt.Errorf(`container runtime endpoint %q: the socket's path must be absolute: "unix:///path/to/socket"`,
				endpoint)
	case strings.HasSuffix(path, "/"):
		return "", fmt.Errorf("container runtime endpoint %q is a folder, not a socket", endpoint)
	}
	return filepath.Clean(path), nil
}

// checkSocket finds the usual faults before gRPC turns them into "transport: error while dialing".
func checkSocket(endpoint, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no container runtime at %s: the socket does not exist; start the runtime or correct the endpoint", endpoint)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("container runtime endpoint %s: permission denied: run it with sudo", endpoint)
	case err != nil:
		return fmt.Errorf("container runtime endpoint %s: %w", endpoint, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("container runtime endpoint %s is not a socket", endpoint)
	}
	return nil
}
