// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// PoliciesTable is the name of the tables in which network policies for the pods of a bridge are.
func PoliciesTable(bridge string) string { return tablePrefix + bridge + "/policies" }

// PodGroup is the group of devices that pods of a bridge have on the machine's side: by it rules know what comes from
// them before it is anything but a frame. It follows from the bridge's name, so that two servers never meet.
func PodGroup(bridge string) uint32 {
	h := fnv.New32a()
	h.Write([]byte("wherry pods on " + bridge))
	return h.Sum32() | 1<<31 // not among the numbers that people give
}

// GroupPods puts the devices of pods that are there into their group, those of an older version too.
func GroupPods(bridge string) error {
	link, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("%w: bridge %s: %v", ErrNoBridge, bridge, err)
	}
	links, err := dump(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("list network devices: %w", err)
	}
	for _, l := range links {
		a := l.Attrs()
		if a.MasterIndex != link.Attrs().Index || !strings.HasPrefix(a.Name, vethPrefix) ||
			a.Group == PodGroup(bridge) {
			continue
		}
		if err := netlink.LinkSetGroup(l, int(PodGroup(bridge))); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("group of network device %s: %w", a.Name, err)
		}
	}
	return nil
}

// BridgeAddress is the hardware address of a bridge.
func BridgeAddress(bridge string) (net.HardwareAddr, error) {
	link, err := netlink.LinkByName(bridge)
	if err != nil {
		return nil, fmt.Errorf("%w: bridge %s: %v", ErrNoBridge, bridge, err)
	}
	return link.Attrs().HardwareAddr, nil
}
