// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Request asks for one attachment.
type Request struct {
	Attachment
	Netns string // path of the sandbox's network namespace; may be empty or gone for Del
	Ports []PortMapping
}

// Attached is what Add made.
type Attached struct {
	HostDevice string
	PodMAC     string
	MTU        int
	Addrs      []netip.Prefix // in the order of Config.CIDRs
	Gateways   []netip.Addr
}

// ErrNoBridge says that Setup has not run, or its bridge was removed since.
var ErrNoBridge = errors.New("the pod network is not set up")

// Add gives a sandbox its interface, addresses, default routes and host ports. When it returns an error nothing is left
// of the attempt. Errors to tell apart: ErrNoBridge, ErrExhausted, ErrPortConflict.
func Add(c Config, r Request) (_ Attached, err error) {
	bridge, err := netlink.LinkByName(c.Bridge)
	if err != nil {
		return Attached{}, fmt.Errorf("%w: bridge %s: %v (the server makes it again)", ErrNoBridge, c.Bridge, err)
	}
	netns, err := openNetns(r.Netns)
	if err != nil {
		return Attached{}, err
	}
	defer netns.Close()
	held := leases{c.StateDir}
	addrs, err := held.take(r.Attachment, c.CIDRs)
	if err != nil {
		return Attached{}, err
	}
	pair := veth{
		host: vethName(r.Attachment), pod: r.IfName, podMAC: hardwareAddr(addrs[0]),
		bridge: bridge.Attrs().Index, group: PodGroup(c.Bridge), mtu: bridge.Attrs().MTU, netns: int(netns.Fd()),
	}
	if err := pair.create(); err != nil {
		// Not ours what is there: only the addresses go back.
		held.release(addrs...)
		return Attached{}, err
	}
	defer func() {
		if err != nil {
			if len(r.Ports) > 0 {
				err = errors.Join(err, withdraw(c, func(a Attachment) bool { return a != r.Attachment }))
			}
			err = errors.Join(err, deleteLink(pair.host))
			held.release(addrs...)
		}
	}()
	if err := hairpin(pair.host); err != nil {
		return Attached{}, err
	}
	if err := inNetns(netns, func() error { return configure(r.IfName, addrs, c.CIDRs) }); err != nil {
		return Attached{}, err
	}
	if err := publish(c, r, addrs); err != nil {
		return Attached{}, err
	}
	awaitUp(pair.host, c.Bridge)
	out := Attached{HostDevice: pair.host, PodMAC: pair.podMAC.String(), MTU: pair.mtu}
	for i, a := range addrs {
		out.Addrs = append(out.Addrs, netip.PrefixFrom(a, c.CIDRs[i].Bits()))
		out.Gateways = append(out.Gateways, Gateway(c.CIDRs[i]))
	}
	return out, nil
}

// hairpin lets the bridge send a pod's packet back to it, as a pod that calls its own host port needs.
func hairpin(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetHairpin(link, true)
	}
	if err != nil {
		return fmt.Errorf("hairpin mode of %s: %w", name, err)
	}
	return nil
}

// awaitUp waits until the kernel passes packets through the devices. It notices a little later, in the background, that
// the other end of a cable is up; what the pod sent until then would be lost and sent again only after a second. There
// is no call to wait for it, and a subscription to link messages would cost more than a look or two. A device that does
// not come up in time is no error: it may yet.
func awaitUp(names ...string) {
	const step, patience = 200 * time.Microsecond, 100
	for _, name := range names {
		for range patience {
			link, err := netlink.LinkByName(name)
			if err != nil || link.Attrs().OperState == netlink.OperUp {
				break
			}
			time.Sleep(step)
		}
	}
}

func publish(c Config, r Request, addrs []netip.Addr) error {
	ports, err := resolve(r.Ports, addrs)
	if err != nil || len(ports) == 0 {
		return err
	}
	if err := inUse(ports); err != nil {
		return err
	}
	for _, p := range ports {
		if p.to.Addr().Is4() { // 127.0.0.1:port of the host; see the guard chain
			if err := sysctl("1", "ipv4", "conf", c.Bridge, "route_localnet"); err != nil {
				return err
			}
			break
		}
	}
	t, err := openTable(c.Bridge)
	if err != nil {
		return err
	}
	defer t.close()
	return t.publish(r.Attachment, ports)
}

// Del removes everything of an attachment, whatever of it is there: it may be called again, after a crash half-way
// through Add, when the namespace is gone, and without knowing the host ports.
func Del(c Config, r Request) error {
	unlock, err := leases{c.StateDir}.lockEnds(unix.LOCK_SH)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err == nil {
		defer unlock()
	}
	// Both wait for the kernel to be sure that no packet is under way there: let them wait together.
	ports := make(chan error, 1)
	go func() { ports <- withdraw(c, func(a Attachment) bool { return a != r.Attachment }) }()
	err = errors.Join(deleteLink(vethName(r.Attachment)), <-ports)
	// Last: nobody gets the address while the device is there.
	return errors.Join(err, leases{c.StateDir}.releaseOwner(r.Attachment))
}

func withdraw(c Config, keep func(Attachment) bool) error {
	t, err := openTable(c.Bridge)
	if err != nil {
		return err
	}
	defer t.close()
	return t.unpublish(keep)
}

// GC removes what belongs to attachments that are not valid: leases, devices on the bridge, host ports. The server
// calls it at boot with the sandboxes the runtime knows, before it serves; no Add may run meanwhile.
func GC(c Config, valid []Attachment) error {
	keep := make(map[Attachment]bool, len(valid))
	devices := make(map[string]bool, len(valid))
	for _, a := range valid {
		keep[a] = true
		devices[vethName(a)] = true
	}
	errs := []error{withdraw(c, func(a Attachment) bool { return keep[a] })}
	if bridge, err := netlink.LinkByName(c.Bridge); err == nil {
		ports, err := bridgePorts(bridge.Attrs().Index)
		errs = append(errs, err)
		for _, name := range ports {
			if strings.HasPrefix(name, vethPrefix) && !devices[name] {
				errs = append(errs, deleteLink(name))
			}
		}
	}
	_, err := leases{c.StateDir}.prune(func(a Attachment) bool { return keep[a] })
	return errors.Join(append(errs, err)...)
}

// Leases lists who holds which pod address.
func Leases(c Config) ([]Lease, error) {
	held, _, err := leases{c.StateDir}.all()
	return held, err
}

// Status says whether Add can work: nil, or ErrNoBridge.
func Status(c Config) error {
	link, err := netlink.LinkByName(c.Bridge)
	if err != nil {
		return fmt.Errorf("%w: bridge %s: %v", ErrNoBridge, c.Bridge, err)
	}
	if link.Type() != "bridge" {
		return fmt.Errorf("%w: %s is a %s, not a bridge", ErrNoBridge, c.Bridge, link.Type())
	}
	return nil
}

// Check says what of an attachment is not as Add left it.
func Check(c Config, r Request) error {
	if err := Status(c); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(c.Bridge)
	if err != nil {
		return err
	}
	host, err := netlink.LinkByName(vethName(r.Attachment))
	if err != nil {
		return fmt.Errorf("host end of the pod's network device: %w", err)
	}
	if host.Attrs().MasterIndex != bridge.Attrs().Index {
		return fmt.Errorf("%s is not attached to bridge %s", host.Attrs().Name, c.Bridge)
	}
	held, err := Leases(c)
	if err != nil {
		return err
	}
	var addrs []netip.Addr
	for _, l := range held {
		if l.Owner == r.Attachment {
			addrs = append(addrs, l.Addr)
		}
	}
	if len(addrs) != len(c.CIDRs) {
		return fmt.Errorf("%d of %d pod addresses are leased", len(addrs), len(c.CIDRs))
	}
	netns, err := openNetns(r.Netns)
	if err != nil {
		return err
	}
	defer netns.Close()
	if err := inNetns(netns, func() error { return checkInside(r.IfName, addrs) }); err != nil {
		return err
	}
	return checkPorts(c, r, addrs)
}

func checkInside(ifname string, addrs []netip.Addr) error {
	link, err := netlink.LinkByName(ifname)
	if err != nil {
		return fmt.Errorf("%s: %w", ifname, err)
	}
	have, err := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return err
	}
	there := map[netip.Addr]bool{}
	for _, a := range have {
		ip, _ := netip.AddrFromSlice(a.IP)
		there[ip.Unmap()] = true
	}
	for _, a := range addrs {
		if !there[a] {
			return fmt.Errorf("%s has lost its address %s", ifname, a)
		}
	}
	return nil
}

func checkPorts(c Config, r Request, addrs []netip.Addr) error {
	want, err := resolve(r.Ports, addrs)
	if err != nil || len(want) == 0 {
		return err
	}
	t, err := openTable(c.Bridge)
	if err != nil {
		return err
	}
	defer t.close()
	there, err := t.hostPorts()
	if err != nil {
		return err
	}
	for _, p := range want {
		found := false
		for _, h := range there {
			found = found || h.hostPort == p && h.owner == r.Attachment
		}
		if !found {
			return fmt.Errorf("host port %s is no longer forwarded", p)
		}
	}
	return nil
}
