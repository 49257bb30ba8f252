// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// vethPrefix begins the name of every host end; GC touches no other device on the bridge.
const vethPrefix = "wv"

// vethName derives the host end's name from the attachment, so that it is found again without any record.
func vethName(a Attachment) string {
	h := fnv.New64a()
	h.Write([]byte(a.String()))
	return fmt.Sprintf("%s%013x", vethPrefix, mix(h.Sum64())>>12)
}

// veth is a pair to be made.
type veth struct {
	host, pod string // names
	podMAC    net.HardwareAddr
	bridge    int    // index
	group     uint32 // of devices; see PodGroup
	mtu       int
	netns     int // file descriptor
}

// create makes both ends, one up on the bridge, the other in the pod's namespace, in a single request: cheap, and
// there is no moment at which one end could be left behind in the wrong place.
func (v veth) create() error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	host := nl.NewIfInfomsg(unix.AF_UNSPEC)
	host.Flags, host.Change = unix.IFF_UP, unix.IFF_UP
	req.AddData(host)
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(v.host)))
	req.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(v.mtu))))
	req.AddData(nl.NewRtAttr(unix.IFLA_MASTER, nl.Uint32Attr(uint32(v.bridge))))
	req.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(v.group)))
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("veth"))
	peer := info.AddRtAttr(nl.IFLA_INFO_DATA, nil).AddRtAttr(nl.VETH_INFO_PEER, nil)
	nl.NewIfInfomsgChild(peer, unix.AF_UNSPEC) // not up: the kernel wants the pair complete first
	peer.AddRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(v.pod))
	peer.AddRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(v.mtu)))
	peer.AddRtAttr(unix.IFLA_ADDRESS, v.podMAC)
	peer.AddRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(v.netns)))
	req.AddData(info)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s or the pod's %s already exists: %w", v.host, v.pod, err)
	}
	if err != nil {
		return fmt.Errorf("create the pod's network device: %w", err)
	}
	return nil
}

// deleteLink removes a device; one that is not there is fine. Removing one end of a veth pair removes both.
func deleteLink(name string) error {
	req := nl.NewNetlinkRequest(unix.RTM_DELLINK, unix.NLM_F_ACK)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove network device %s: %w", name, err)
	}
	return nil
}

// openNetns opens a network namespace by path and checks that it is one.
func openNetns(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil || st.Type != unix.NSFS_MAGIC {
		f.Close()
		return nil, fmt.Errorf("%s is not a network namespace", path)
	}
	return f, nil
}

// inNetns runs do on a thread of its own that has moved into the namespace; the thread ends with it.
func inNetns(netns *os.File, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime discards the thread, nobody else ends up in the namespace
		if err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- do()
	}()
	return <-done
}

// configure sets up the inside of the pod's namespace: loopback, addresses, default routes. It runs in the namespace.
func configure(ifname string, addrs []netip.Addr, cidrs []netip.Prefix) error {
	loopback := netlink.NewLinkAttrs()
	loopback.Name, loopback.Index = "lo", 1
	if err := netlink.LinkSetUp(&netlink.Device{LinkAttrs: loopback}); err != nil {
		return fmt.Errorf("lo up: %w", err)
	}
	link, err := netlink.LinkByName(ifname)
	if err != nil {
		return fmt.Errorf("%s: %w", ifname, err)
	}
	// A neighbour on the bridge must not be able to become the pod's router. A kernel without IPv6 has no such file.
	if err := sysctl("0", "ipv6", "conf", ifname, "accept_ra"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("%s up: %w", ifname, err)
	}
	for i, a := range addrs {
		if err := netlink.AddrAdd(link, address(netip.PrefixFrom(a, cidrs[i].Bits()))); err != nil {
			return fmt.Errorf("add address %s to %s: %w", a, ifname, err)
		}
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: Gateway(cidrs[i]).AsSlice()}
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("add default route via %s: %w", Gateway(cidrs[i]), err)
		}
	}
	return nil
}
