// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	keeperRest   = 100 * time.Millisecond // between two looks, however much happens; it doubles while something does
	keeperCalm   = time.Second            // up to this: a machine on which much happens is not looked at all the time
	keeperRelist = time.Minute            // a look without a notice: some might be missing one day
	keeperRetry  = time.Second            // after a failure; it doubles
	keeperSlow   = 30 * time.Second       // up to this
)

// What has a keeper look. It says so of what it mends: that nobody has told it of damage is worth knowing.
const (
	atStart   = "start"
	onNotice  = "notice"  // the kernel has told of a change
	onRoutine = "routine" // nothing, for a while
	onRetry   = "retry"   // what could not be mended
)

// Keeper keeps a network as it should be while its server runs: what somebody else takes away, a firewall that flushes
// all tables, an administrator, is made again at once, for pods that run too. See decision 026.
type Keeper struct {
	config Config
	pods   func(context.Context) ([]Pod, error)
	log    *slog.Logger

	mu       sync.Mutex // one at a time installs rules, or looks and mends
	services Services   // as carried; the zero value before
	carried  bool
	rules    string // fingerprint of the rules as installed
	nodes    []Node
	ways     []way // to them, as made
	reaches  bool  // nodes are known
}

// NewKeeper sets the network up. pods lists the pods that run, which the network must serve.
func NewKeeper(c Config, pods func(context.Context) ([]Pod, error), log *slog.Logger) (*Keeper, error) {
	if err := Setup(c); err != nil {
		return nil, err
	}
	rules, err := fingerprint(c.Bridge)
	return &Keeper{config: c, pods: pods, log: log, rules: rules}, err
}

// Carry is [Carry], kept up from then on.
func (k *Keeper) Carry(s Services) (ownRoutes []netip.Prefix, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, err := fingerprint(k.config.Bridge)
	if err != nil {
		return nil, err
	}
	if ownRoutes, err = Carry(k.config, s); err != nil {
		return nil, err
	}
	k.services, k.carried = s, true
	if before != k.rules { // something else is amiss too, and is found by the next look
		k.rules = ""
		return ownRoutes, nil
	}
	k.rules, err = fingerprint(k.config.Bridge)
	return ownRoutes, err
}

// Run looks at the network whenever something happens to it, and mends it, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	changed, failed, err := watch(ctx, k.config.Bridge)
	if err != nil {
		k.log.Warn("the pod network cannot be watched: damage to it is repaired within a minute instead of at once",
			"err", err)
	}
	retry, rest := keeperRetry, keeperRest
	trigger := atStart
	for {
		wait, later := keeperRelist, onRoutine
		events := changed
		if err := k.inspect(ctx, trigger); err == nil {
			retry = keeperRetry
			if !pause(ctx, rest) {
				return
			}
			if rest = min(2*rest, keeperCalm); len(changed) == 0 {
				rest = keeperRest
			}
		} else {
			if ctx.Err() != nil {
				return
			}
			k.log.Warn("the pod network cannot be repaired", "err", err, "next-try", retry)
			// Whatever happens meanwhile, part of it our own doing, does not make the next try come sooner.
			wait, later, events, retry = retry, onRetry, nil, min(2*retry, keeperSlow)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-events:
			trigger = onNotice
		case <-timer.C:
			trigger = later
		case err := <-failed:
			trigger = later
			if ctx.Err() == nil {
				k.log.Warn("the pod network can no longer be watched: damage to it is repaired within a minute instead of at once", "err", err)
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Mend looks once and does what [mend] decides. One thing that cannot be done keeps nothing else from being done.
func (k *Keeper) Mend(ctx context.Context) error { return k.inspect(ctx, onRoutine) }

func (k *Keeper) inspect(ctx context.Context, trigger string) error {
	pods, err := k.pods(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w, err := k.want(pods)
	if err != nil {
		return err
	}
	s, err := look(k.config, k.services, k.rules)
	if err == nil && k.reaches {
		if s.nodes = len(k.ways) == 0; !s.nodes { // a machine by itself does not look for what nobody makes
			s.nodes, err = reached(k.config, k.ways)
		}
	}
	if err != nil {
		return err
	}
	repairs := mend(w, s)
	var errs []error
	var done []string
	for _, r := range repairs {
		made, err := k.do(r)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r, err))
		} else if made {
			done = append(done, r.String())
		}
	}
	if len(done) > 0 {
		k.log.Warn("parts of the pod network were missing and have been restored", "what", done, "trigger", trigger)
	}
	return errors.Join(errs...)
}

// want adds to pods what is known of them by their leases. A pod without is about to end, or to begin.
func (k *Keeper) want(pods []Pod) (wanted, error) {
	held, err := Leases(k.config)
	if err != nil {
		return wanted{}, err
	}
	addrs := map[Attachment][]netip.Addr{}
	for _, cidr := range k.config.CIDRs {
		for _, l := range held {
			if cidr.Contains(l.Addr) {
				addrs[l.Owner] = append(addrs[l.Owner], l.Addr)
			}
		}
	}
	w := wanted{nodes: k.reaches, loopback: k.services.Proxied ||
		k.services.API.IsValid() && k.services.Server.Addr().IsLoopback()}
	for _, p := range pods {
		a := addrs[p.Attachment]
		if len(a) != len(k.config.CIDRs) {
			continue
		}
		ports, err := resolve(p.Ports, a)
		if err != nil {
			return w, fmt.Errorf("host ports of sandbox %s: %w", p.ContainerID, err)
		}
		w.loopback = w.loopback || slices.ContainsFunc(ports, func(h hostPort) bool { return h.to.Addr().Is4() })
		w.pods = append(w.pods, wantedPod{p, a, ports})
	}
	return w, nil
}

// do does one thing. made says that there was something to do still.
func (k *Keeper) do(r repair) (made bool, err error) {
	switch r.kind {
	case remakeRules:
		return true, k.install()
	case remakeBridge:
		return true, ensureBridge(k.config)
	case remakeForward:
		return true, forward(k.config)
	case remakeLoopback:
		return true, sysctl("1", "ipv4", "conf", k.config.Bridge, "route_localnet")
	case remakeInside:
		return true, keepInside(k.config)
	case remakeRoute:
		return true, routeHere(k.config, k.services)
	case remakeNodes:
		_, err := k.reach()
		return true, err
	case remakeLeaves:
		devices, err := leaves(k.config)
		if err != nil {
			return false, err
		}
		return true, leave(k.config, devices)
	}
	return k.forPod(r)
}

// install makes the table anew, with the rules about services.
func (k *Keeper) install() error {
	t, err := openTable(k.config.Bridge)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.ensure(k.config); err != nil {
		return err
	}
	if k.carried {
		if _, err := Carry(k.config, k.services); err != nil {
			return err
		}
	}
	k.rules, err = fingerprint(k.config.Bridge)
	return err
}

// forPod does what is about a pod, unless it has ended meanwhile: what was made then would be left behind.
func (k *Keeper) forPod(r repair) (made bool, err error) {
	held := leases{k.config.StateDir}
	unlock, err := held.holdEnds()
	if err != nil {
		return false, err
	}
	defer unlock()
	for _, a := range r.pod.addrs {
		if l, ok := held.read(a.String()); !ok || l.Owner != r.pod.Attachment {
			return false, nil
		}
	}
	switch r.kind {
	case remakeLink:
		return true, k.remakeLink(r.pod)
	case reattachLink:
		return true, k.reattach(r.pod)
	case republish:
		t, err := openTable(k.config.Bridge)
		if err != nil {
			return false, err
		}
		defer t.close()
		return true, t.publish(r.pod.Attachment, r.ports)
	}
	return false, fmt.Errorf("repair %d is not one of a pod", r.kind)
}

// remakeLink gives a pod its interface again, with the addresses and the hardware address that it had.
func (k *Keeper) remakeLink(p wantedPod) error {
	bridge, err := netlink.LinkByName(k.config.Bridge)
	if err != nil {
		return err
	}
	netns, err := openNetns(p.Netns)
	if err != nil {
		return err
	}
	defer netns.Close()
	pair := veth{
		host: vethName(p.Attachment), pod: p.IfName, podMAC: hardwareAddr(p.addrs[0]),
		bridge: bridge.Attrs().Index, group: PodGroup(k.config.Bridge), mtu: bridge.Attrs().MTU, netns: int(netns.Fd()),
	}
	if err := pair.create(); err != nil {
		return err
	}
	err = hairpin(pair.host)
	if err == nil {
		err = inNetns(netns, func() error { return configure(p.IfName, p.addrs, k.config.CIDRs) })
	}
	if err != nil {
		return errors.Join(err, deleteLink(pair.host)) // the next try begins anew
	}
	return nil
}

// reattach puts the host's end of a pod's devices on the bridge.
func (k *Keeper) reattach(p wantedPod) error {
	bridge, err := netlink.LinkByName(k.config.Bridge)
	if err != nil {
		return err
	}
	name := vethName(p.Attachment)
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMaster(link, bridge); err != nil {
		return err
	}
	if err := hairpin(name); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}
