// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"
	"slices"
)

// Pod is a pod that runs, as its runtime has it on record: what the kernel must have for it.
type Pod struct {
	Attachment
	Netns string // path of its network namespace
	Ports []PortMapping
}

// wanted is what should be there.
type wanted struct {
	pods []wantedPod
	// loopback: packets from the bridge go to 127.0.0.1, for a host port or for a server that listens there.
	loopback bool
	nodes    bool // it is known how other nodes are reached
}

// wantedPod is a pod with its addresses, in the order of Config.CIDRs, and its host ports.
type wantedPod struct {
	Pod
	addrs []netip.Addr
	ports []hostPort
}

// seen is what is there.
type seen struct {
	rules      bool // of the table: as they were installed
	bridge     int  // its index; 0 says that it is missing, down, or without an address of its own
	forwarding bool
	loopback   bool
	inside     bool // routes that keep packets to pods on the machine
	route      bool // to the address of service kubernetes, or none is needed
	nodes      bool // ways to other nodes
	leaves     bool // devices let packets from loopback out that are to
	links      map[string]seenLink
	ports      map[hostPort]Attachment
}

type seenLink struct {
	master int
	up     bool
}

// kind says what a repair does.
type kind int

const (
	remakeRules    kind = iota // install the table
	remakeBridge               // with addresses, up
	remakeForward              // net.ipv4.ip_forward and IPv6's
	remakeLoopback             // route_localnet of the bridge
	remakeInside               // routes that keep packets to pods on the machine
	remakeRoute                // to service kubernetes
	remakeNodes                // ways to other nodes' pods
	remakeLeaves               // route_localnet of devices to other nodes
	remakeLink                 // a pod's pair of devices
	reattachLink               // put the host's end on the bridge, up
	republish                  // a pod's host ports
)

// repair is one thing to do. pod and ports are set for those that are about a pod.
type repair struct {
	kind  kind
	pod   wantedPod
	ports []hostPort // those that are missing
}

// String is for the log.
func (r repair) String() string {
	switch r.kind {
	case remakeRules:
		return "firewall table"
	case remakeBridge:
		return "bridge"
	case remakeForward:
		return "forwarding"
	case remakeLoopback:
		return "way from the bridge to loopback"
	case remakeInside:
		return "route that keeps packets to pods here"
	case remakeRoute:
		return "route to service kubernetes"
	case remakeNodes:
		return "routes to pods of other nodes"
	case remakeLeaves:
		return "way from loopback to pods of other nodes"
	case remakeLink:
		return fmt.Sprintf("network device of sandbox %.12s", r.pod.ContainerID)
	case reattachLink:
		return fmt.Sprintf("place on the bridge of sandbox %.12s", r.pod.ContainerID)
	case republish:
		return fmt.Sprintf("host ports %v of sandbox %.12s", r.ports, r.pod.ContainerID)
	}
	return fmt.Sprintf("repair %d", r.kind)
}

// mend decides what is to be done so that what is wanted is there, in this order: pods' devices need the bridge, their
// host ports the table. A bridge that is made anew has no parameters, and no devices: they are seen to as if they had
// been seen missing. mend is pure, and asks for nothing that is there: of an intact network it returns none.
func mend(w wanted, s seen) []repair {
	var out []repair
	need := func(k kind, intact bool) {
		if !intact {
			out = append(out, repair{kind: k})
		}
	}
	bridge := s.bridge != 0
	need(remakeRules, s.rules)
	need(remakeBridge, bridge)
	need(remakeForward, s.forwarding)
	need(remakeLoopback, !w.loopback || s.loopback && bridge)
	need(remakeInside, s.inside)
	need(remakeRoute, s.route)
	need(remakeNodes, !w.nodes || s.nodes)
	need(remakeLeaves, s.leaves)
	for _, p := range w.pods {
		switch l, there := s.links[vethName(p.Attachment)]; {
		case !there:
			out = append(out, repair{kind: remakeLink, pod: p})
		case !l.up || !bridge || l.master != s.bridge:
			out = append(out, repair{kind: reattachLink, pod: p})
		}
		missing := slices.DeleteFunc(slices.Clone(p.ports), func(h hostPort) bool { return s.ports[h] == p.Attachment })
		if len(missing) > 0 {
			out = append(out, repair{kind: republish, pod: p, ports: missing})
		}
	}
	return out
}
