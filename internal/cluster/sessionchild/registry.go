// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// dialTime is how long a registry may take to take a connection.
const dialTime = 10 * time.Second

// beyond asks registries, but none at an address of the node itself, of its link, or at which clouds serve a machine's
// metadata: there are services for the node alone, and a cloud's keys, and who may run an image beside a pod is not the
// node's administrator. Other machines of its networks are reached.
//
// A proxy that the agent is configured with may be anywhere: who has named it is the administrator. What it is asked
// for is judged, as far as names mean the same here.
type beyond struct {
	direct, through *http.Transport
	proxy           func(*http.Request) (*url.URL, error)
	own             func() ([]net.Addr, error) // the node's addresses
}

func beyondNode() *beyond { return newBeyond(http.ProxyFromEnvironment, net.InterfaceAddrs) }

func newBeyond(proxy func(*http.Request) (*url.URL, error), own func() ([]net.Addr, error)) *beyond {
	t, ok := remote.DefaultTransport.(*http.Transport)
	if !ok { // the library's has always been one
		t = &http.Transport{}
	}
	b := &beyond{direct: t.Clone(), through: t.Clone(), proxy: proxy, own: own}
	b.through.Proxy, b.direct.Proxy = proxy, nil
	// It is asked for the address itself, after names are resolved, so that no name can be made to mean something else
	// meanwhile.
	b.direct.DialContext = (&net.Dialer{Timeout: dialTime, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return b.judge(to.Addr())
	}}).DialContext
	return b
}

// RoundTrip implements http.RoundTripper. It is called for each redirection too.
func (b *beyond) RoundTrip(req *http.Request) (*http.Response, error) {
	proxy, err := b.proxy(req)
	if err == nil && proxy == nil {
		return b.direct.RoundTrip(req)
	}
	if err == nil {
		err = b.judgeName(req.Context(), req.URL.Hostname())
	}
	if err == nil {
		return b.through.RoundTrip(req)
	}
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}

// judgeName refuses a name that means what is not to be asked. One that means nothing here is the proxy's to resolve.
func (b *beyond) judgeName(ctx context.Context, host string) error {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return ctx.Err()
	}
	for _, ip := range ips {
		if err := b.judge(ip); err != nil {
			return err
		}
	}
	return nil
}

func (b *beyond) judge(ip netip.Addr) error {
	own, err := b.own()
	if err != nil {
		return fmt.Errorf("the node's own addresses: %w", err)
	}
	return notOfNode(ip, own)
}

// notOfNode refuses an address that means the node, its link, or a cloud's metadata service. (Pure.)
func notOfNode(ip netip.Addr, own []net.Addr) error {
	ip = ip.Unmap().WithZone("")
	isOwn := slices.ContainsFunc(own, func(a net.Addr) bool {
		n, is := a.(*net.IPNet)
		return is && n.IP.Equal(ip.AsSlice())
	})
	if isOwn || ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() ||
		slices.Contains(metadata(), ip.String()) {
		return fmt.Errorf("%s is an address of the node itself, of its link, or of its cloud's own services: "+
			"images come from registries beyond it", ip)
	}
	return nil
}

// metadata are the addresses of clouds' metadata services, beside those of its link.
func metadata() []string {
	return []string{"fd00:ec2::254", "fd20:ce::254", "168.63.129.16", "100.100.100.200", "192.0.0.192"}
}
