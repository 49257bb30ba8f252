// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A lease is a symbolic link <StateDir>/leases/<address> whose target is its owner, "<container id>/<interface>".
// Making a link creates name and content in one system call and refuses a name that exists, so there is no half-written
// lease and no address given twice, wherever a process dies. The cursors (last address given out, one per family) are a
// hint in the lock file: when unreadable, the search starts at the first address.

// Attachment is one interface of one sandbox.
type Attachment struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifname"`
}

func (a Attachment) String() string { return a.ContainerID + "/" + a.IfName }

// parseAttachment reads the target of a lease. Neither part may be empty or contain a slash.
func parseAttachment(s string) (Attachment, bool) {
	id, ifname, ok := strings.Cut(s, "/")
	if !ok || id == "" || ifname == "" || strings.Contains(ifname, "/") {
		return Attachment{}, false
	}
	return Attachment{ContainerID: id, IfName: ifname}, true
}

// Lease is an address held by an attachment.
type Lease struct {
	Addr  netip.Addr
	Owner Attachment
}

// ErrExhausted says that no address of a pod CIDR is free.
var ErrExhausted = errors.New("no free pod address")

// leases is the folder of one network's leases.
type leases struct{ dir string }

func (l leases) folder() string               { return filepath.Join(l.dir, "leases") }
func (l leases) file(a netip.Addr) string     { return filepath.Join(l.folder(), a.String()) }
func (l leases) ensure() error                { return os.MkdirAll(l.folder(), 0o700) }
func (l leases) lock() (*lockedCursor, error) { return lockCursor(filepath.Join(l.dir, "lock")) }

// take leases one address of every CIDR to owner, the one after the last given out (a just freed address rests as long
// as possible: others may still remember it). Either all or none are taken.
func (l leases) take(owner Attachment, cidrs []netip.Prefix) ([]netip.Addr, error) {
	if _, ok := parseAttachment(owner.String()); !ok {
		return nil, fmt.Errorf("container ID %q and interface %q cannot have a lease", owner.ContainerID, owner.IfName)
	}
	cur, err := l.lock()
	if errors.Is(err, os.ErrNotExist) {
		if err = l.ensure(); err == nil {
			cur, err = l.lock()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("address leases: %w", err)
	}
	defer cur.unlock()
	var got []netip.Addr
	for _, p := range cidrs {
		a, err := l.takeOne(owner, p, cur.last(p))
		if err != nil {
			l.release(got...)
			return nil, err
		}
		got = append(got, a)
	}
	cur.store(got)
	return got, nil
}

func (l leases) takeOne(owner Attachment, p netip.Prefix, last netip.Addr) (netip.Addr, error) {
	first, end := usable(p)
	a := first
	if p.Contains(last) && !last.Less(first) && last.Less(end) {
		a = last.Next()
	}
	for start, wrapped := a, false; !wrapped || a != start; {
		err := os.Symlink(owner.String(), l.file(a))
		if errors.Is(err, os.ErrNotExist) { // the first lease ever
			if err = l.ensure(); err == nil {
				continue
			}
		}
		if err == nil {
			return a, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return netip.Addr{}, fmt.Errorf("lease of a pod address: %w", err)
		}
		if a == end {
			a, wrapped = first, true
		} else {
			a = a.Next()
		}
	}
	return netip.Addr{}, fmt.Errorf("%w in %s: all are leased to pods (see %s)", ErrExhausted, p, l.folder())
}

// release frees addresses; those not leased are fine.
func (l leases) release(addrs ...netip.Addr) {
	for _, a := range addrs {
		_ = os.Remove(l.file(a))
	}
}

// all lists the leases. Strange files are reported by name as junk; a missing folder is an empty one.
func (l leases) all() (held []Lease, junk []string, err error) {
	d, err := os.Open(l.folder())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		lease, ok := l.read(name)
		if !ok {
			junk = append(junk, name)
			continue
		}
		held = append(held, lease)
	}
	return held, junk, nil
}

func (l leases) read(name string) (Lease, bool) {
	a, err := netip.ParseAddr(name)
	if err != nil || a.String() != name {
		return Lease{}, false
	}
	target, err := os.Readlink(filepath.Join(l.folder(), name))
	if err != nil {
		return Lease{}, false
	}
	owner, ok := parseAttachment(target)
	return Lease{Addr: a, Owner: owner}, ok
}

// releaseOwner frees every address of owner.
func (l leases) releaseOwner(owner Attachment) error {
	held, _, err := l.all()
	if err != nil {
		return fmt.Errorf("address leases: %w", err)
	}
	for _, lease := range held {
		if lease.Owner == owner {
			if err := os.Remove(l.file(lease.Addr)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("release of %s: %w", lease.Addr, err)
			}
		}
	}
	return nil
}

// prune frees the leases whose owner keep rejects, and junk.
func (l leases) prune(keep func(Attachment) bool) (freed []Lease, err error) {
	cur, err := l.lock()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("address leases: %w", err)
	}
	defer cur.unlock()
	held, junk, err := l.all()
	if err != nil {
		return nil, fmt.Errorf("address leases: %w", err)
	}
	for _, name := range junk {
		_ = os.RemoveAll(filepath.Join(l.folder(), name))
	}
	for _, lease := range held {
		if !keep(lease.Owner) {
			l.release(lease.Addr)
			freed = append(freed, lease)
		}
	}
	return freed, nil
}

// usable is the range of addresses for pods: all but the network address, the gateway and, in IPv4, the broadcast
// address.
func usable(p netip.Prefix) (first, last netip.Addr) {
	p = p.Masked()
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	last, _ = netip.AddrFromSlice(b)
	if p.Addr().Is4() {
		last = last.Prev()
	}
	return Gateway(p).Next(), last
}

// lockedCursor is the lock file, held exclusively.
type lockedCursor struct {
	f     *os.File
	addrs []netip.Addr
}

// holdEnds lets no attachment end until unlock: while somebody looks whether one is still there, and makes something
// for it.
func (l leases) holdEnds() (unlock func(), err error) { return l.lockEnds(unix.LOCK_EX) }

// lockEnds locks the file by which ends of attachments and repairs keep apart. Ends do not wait for one another: they
// share it.
func (l leases) lockEnds(how int) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(l.dir, "ends"), os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the ends of attachments: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

func lockCursor(path string) (*lockedCursor, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
	buf := make([]byte, 256)
	n, _ := f.ReadAt(buf, 0)
	return &lockedCursor{f: f, addrs: parseCursor(buf[:n])}, nil
}

// parseCursor reads addresses, one a line; what is no address is ignored.
func parseCursor(b []byte) []netip.Addr {
	var out []netip.Addr
	for line := range strings.Lines(string(b)) {
		if a, err := netip.ParseAddr(strings.TrimSpace(line)); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// last is the address of p given out last, or the zero Addr.
func (c *lockedCursor) last(p netip.Prefix) netip.Addr {
	for _, a := range c.addrs {
		if p.Contains(a) {
			return a
		}
	}
	return netip.Addr{}
}

func (c *lockedCursor) store(addrs []netip.Addr) {
	var b strings.Builder
	for _, a := range addrs {
		b.WriteString(a.String() + "\n")
	}
	// Only a hint: errors and torn writes cost nothing but the order of addresses.
	if _, err := c.f.WriteAt([]byte(b.String()), 0); err == nil {
		_ = c.f.Truncate(int64(b.Len()))
	}
}

func (c *lockedCursor) unlock() { c.f.Close() }
