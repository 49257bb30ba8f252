// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// outside is a machine beside this one: a network namespace at the end of a cable, without a route to any pod. It serves HTTP
// and tells clients who they look like.
type outside struct {
	address string // of its HTTP server
	gateway string // this machine's address on the cable
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{}
	// The namespace lives as long as this thread and the listener in it do.
	type made struct {
		l   net.Listener
		err error
	}
	done, quit := make(chan made), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and does not go back to others
		l, err := o.build()
		done <- made{l, err}
		<-quit
	}()
	m := <-done
	t.Cleanup(func() { close(quit) })
	if m.err != nil {
		t.Fatal(m.err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr) // a server's own RemoteAddr always has a port
		fmt.Fprint(w, host)
	})}
	go srv.Serve(m.l)
	t.Cleanup(func() { srv.Close() })
	return o
}

// build makes the namespace on the calling thread, and the cable. Its names and addresses are chosen at random, because another run of
// the tests may have one too, and the kernel takes its time to remove those of the run before. The addresses are for tests (RFC 2544).
func (o *outside) build() (net.Listener, error) {
	var id [4]byte
	_, _ = rand.Read(id[:])
	near, far := fmt.Sprintf("who%x", id), fmt.Sprintf("whi%x", id)
	net4 := netip.AddrFrom4([4]byte{198, 18 | id[0]&1, id[1], id[2] &^ 3})
	gateway := net4.Next()
	there := gateway.Next()
	o.gateway, o.address = gateway.String(), netip.AddrPortFrom(there, 8000).String()
	home, err := netns.Get()
	if err != nil {
		return nil, err
	}
	defer home.Close()
	if _, err := netns.New(); err != nil { // and enters it
		return nil, err
	}
	cable := netlink.NewVeth(netlink.LinkAttrs{Name: near})
	cable.PeerName, cable.PeerNamespace = far, netlink.NsFd(home)
	if err := netlink.LinkAdd(cable); err != nil {
		return nil, err
	}
	if err := up(nil, near, there.String()+"/30"); err != nil {
		return nil, err
	}
	here, err := netlink.NewHandleAt(home)
	if err != nil {
		return nil, err
	}
	defer here.Close()
	if err := up(here, far, o.gateway+"/30"); err != nil {
		return nil, err
	}
	return net.Listen("tcp", o.address)
}

func up(h *netlink.Handle, name, cidr string) error {
	if h == nil {
		var err error
		if h, err = netlink.NewHandle(); err != nil {
			return err
		}
		defer h.Close()
	}
	link, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(cidr)
	if err != nil {
		return err
	}
	if err := h.AddrAdd(link, addr); err != nil {
		return err
	}
	return h.LinkSetUp(link)
}
