// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrAttached: a bridge cannot go, as pods are attached to it.
var ErrAttached = errors.New("pods are attached to the bridge")

// Exists reports whether anything of a network is there: a device of the bridge's name, whosever it is, or the table.
func Exists(c Config) (bool, error) {
	link, err := existing(c.Bridge)
	if link != nil || err != nil {
		return true, err
	}
	rules, err := fingerprint(c.Bridge)
	return rules != "", err
}

// Leave removes the bridge and the rules of a network that a data folder had before it was given another bridge: the
// route to the old bridge would be in the way of the pod CIDR. A bridge that Setup did not make for these subnets stays
// as it is, and so do the leases of addresses. It is idempotent. The error is ErrAttached if pods still use it; nothing
// is changed then.
func Leave(c Config) error {
	link, err := existing(c.Bridge)
	if err != nil {
		return err
	}
	if link != nil {
		if link.Type() != "bridge" || len(c.CIDRs) == 0 || !bytes.Equal(link.Attrs().HardwareAddr,
			hardwareAddr(Gateway(c.CIDRs[0]))) {
			return nil
		}
		ports, err := bridgePorts(link.Attrs().Index)
		if err != nil {
			return err
		}
		if len(ports) > 0 {
			return fmt.Errorf("%w (%s: %d)", ErrAttached, c.Bridge, len(ports))
		}
	}
	c.StateDir = "" // the leases go on with the new bridge
	return Teardown(c)
}
