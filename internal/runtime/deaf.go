// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// streamAddress is where the CRI's own server of streams listens: an address of the loopback network that nothing else
// has, by which its socket is known.
const streamAddress = "127.87.72.82"

// The CRI says that it is ready while that server is still being started.
const (
	streamLook = 2 * time.Millisecond
	streamTime = 10 * time.Second
)

// deafenStreams closes the way to the CRI's server of streams, which it starts whether or not it is asked for streams,
// on a port that every user of the machine, and every pod on the machine's network, can connect to: its connections
// would be counted nowhere, and take this process's descriptors (RS-01). What it does is done by Exec, Attach and
// DialPod.
func (r *Runtime) deafenStreams(ctx context.Context) {
	late := time.After(streamTime)
	for {
		found, err := deafen(netip.MustParseAddr(streamAddress))
		switch {
		case err != nil:
			r.log.Warn("the container runtime's port for streams stays open to users of this machine: "+
				"start the server without multipathtcp in GODEBUG", "address", streamAddress, "err", err)
			return
		case found:
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-late:
			r.log.Warn("the container runtime's port for streams was not found to be closed: it may be open to users "+
				"of this machine; start the server again", "address", streamAddress, "after", streamTime)
			return
		case <-time.After(streamLook): // nothing reports it
		}
	}
}

// streamless refuses the calls that answer with a place on that port: an error is better than waiting there.
func streamless(req any) error {
	what := ""
	switch req.(type) {
	case *criapi.ExecRequest:
		what = "wherry kubectl exec, or crictl exec -s"
	case *criapi.AttachRequest:
		what = "wherry kubectl attach"
	case *criapi.PortForwardRequest:
		what = "wherry kubectl port-forward"
	default:
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "this runtime has no port for streams: use %s", what)
}

// deafen has this process's listeners on an address drop whatever is sent to them. It reports whether there was one.
func deafen(addr netip.Addr) (found bool, err error) {
	const fds = "/proc/self/fd"
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// A duplicate stays what it is, also when the number is another file's in the next moment.
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if listensOn(own, addr) {
			found = true
			err = dropAll(own)
		}
		unix.Close(own)
		if err != nil {
			return found, fmt.Errorf("listener on %s: %w", addr, err)
		}
	}
	return found, nil
}

func listensOn(fd int, addr netip.Addr) bool {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	in, ok := sa.(*unix.SockaddrInet4)
	if !ok || netip.AddrFrom4(in.Addr) != addr {
		return false
	}
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return err == nil && listens == 1
}

// dropAll gives a socket a filter that lets nothing in: no connection to it is ever made.
func dropAll(fd int) error {
	none := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &none})
}
