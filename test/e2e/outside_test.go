// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
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
	o := &outside{address: "198.51.100.2:8000", gateway: "198.51.100.1"}
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

// build makes the namespace on the calling thread, and the cable.
func (o *outside) build() (net.Listener, error) {
	home, err := netns.Get()
	if err != nil {
		return nil, err
	}
	defer home.Close()
	if _, err := netns.New(); err != nil { // and enters it
		return nil, err
	}
	cable := netlink.NewVeth(netlink.LinkAttrs{Name: "whout0"})
	cable.PeerName, cable.PeerNamespace = "whout1", netlink.NsFd(home)
	if err := netlink.LinkAdd(cable); err != nil {
		return nil, err
	}
	if err := up(nil, "whout0", "198.51.100.2/30"); err != nil {
		return nil, err
	}
	there, err := netlink.NewHandleAt(home)
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := up(there, "whout1", "198.51.100.1/30"); err != nil {
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
