// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// DialPod returns what connects to a pod's TCP ports from inside its network (EC-14), on its loopback addresses, IPv4's
// first. A sandbox that is not there, or has no network any more, is a NotFound of the CRI's.
func (r *Runtime) DialPod(ctx context.Context, sandboxID string) (
	dial func(ctx context.Context, port int32) (net.Conn, error), err error) {
	c, err := r.client.LoadContainer(namespaces.WithNamespace(ctx, Namespace), sandboxID)
	if errdefs.IsNotFound(err) {
		return nil, status.Errorf(codes.NotFound, "sandbox %s does not exist", sandboxID)
	} else if err != nil {
		return nil, err
	}
	spec, err := c.Spec(namespaces.WithNamespace(ctx, Namespace))
	if err != nil {
		return nil, err
	}
	path := networkOf(spec)
	if path == "" { // the machine's
		return dialLoopback, nil
	}
	if _, err := os.Stat(path); err != nil {
		return nil,
			status.Errorf(codes.NotFound,
				"the pod's network is gone: it has ended, or its sandbox is being created again")
	}
	return func(ctx context.Context, port int32) (conn net.Conn, err error) {
		err = inNetwork(path, func() error {
			conn, err = dialLoopback(ctx, port)
			return err
		})
		return conn, err
	}, nil
}

// networkOf is the path of a sandbox's network namespace; empty for the machine's.
func networkOf(spec *specs.Spec) string {
	if spec.Linux == nil {
		return ""
	}
	for _, n := range spec.Linux.Namespaces {
		if n.Type == specs.NetworkNamespace {
			return n.Path
		}
	}
	return ""
}

// dialLoopback connects from the calling thread's network: to addresses, one after the other, as the library would ask
// for names, and try several addresses, on threads of its own.
func dialLoopback(ctx context.Context, port int32) (net.Conn, error) {
	var d net.Dialer
	at := strconv.Itoa(int(port))
	conn, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", at))
	if err == nil {
		return conn, nil
	}
	conn, err6 := d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", at))
	if err6 == nil {
		return conn, nil
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil, fmt.Errorf("nothing listens on port %d of the pod's loopback addresses: %w", port, err)
	}
	return nil, errors.Join(err, err6)
}

// inNetwork runs do on a thread in a network namespace. The thread is not used again.
func inNetwork(path string, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: it ends with its goroutine
		f, err := os.Open(path)
		if err != nil {
			done <- fmt.Errorf("the pod's network is gone: %w", err)
			return
		}
		defer f.Close()
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter the pod's network: %w", err)
			return
		}
		done <- do()
	}()
	return <-done
}
