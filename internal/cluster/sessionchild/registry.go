// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// dialTime is how long a registry may take to take a connection.
const dialTime = 10 * time.Second

// beyondNode asks registries, but none on the node itself or its link: there are services for the node alone, and a
// cloud's metadata with its keys, and who may run an image beside a pod is not the node's administrator.
func beyondNode() http.RoundTripper {
	t, ok := remote.DefaultTransport.(*http.Transport)
	if !ok { // the library's has always been one
		t = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	t = t.Clone()
	t.DialContext = (&net.Dialer{Timeout: dialTime, Control: func(_, address string, _ syscall.RawConn) error {
		return notOfNode(address)
	}}).DialContext
	return t
}

// notOfNode refuses an address that means the node or its link. It is asked for the address itself, after names are
// resolved, so that no name can be made to mean something else meanwhile. (Pure.)
func notOfNode(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := to.Addr().Unmap().WithZone(""); ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() ||
		ip.IsMulticast() {
		return fmt.Errorf("%s is an address of the node itself or of its link: images come from registries beyond it",
			ip)
	}
	return nil
}
