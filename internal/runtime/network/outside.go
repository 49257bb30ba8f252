// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"net/netip"
)

// CarryOutside is [Carry] for a network that another runtime makes: of that only the name of its bridge is known, and
// nothing but rules of ours is touched. The bridge may not be there yet, unless the API server listens on loopback.
func CarryOutside(bridge string, s Services) (ownRoutes []netip.Prefix, err error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	switch link, err := existing(bridge); {
	case err != nil:
		return nil, err
	case link != nil && link.Type() != "bridge" && link.Type() != "openvswitch":
		return nil, notABridge(link) // rules on the machine's own device would cut it off
	}
	if s.API.IsValid() && s.Server.Addr().IsLoopback() {
		// Before what route_localnet opens: what else listens on loopback stays out of the pods' reach.
		t, err := openTable(bridge)
		if err != nil {
			return nil, err
		}
		defer t.close()
		t.conn.AddTable(t.t)
		t.guard(Config{Bridge: bridge})
		if err := t.conn.Flush(); err != nil {
			return nil, err
		}
	}
	return carry(Config{Bridge: bridge}, s)
}

// ForgetOutside removes the rules of CarryOutside. It is idempotent.
func ForgetOutside(bridge string) error {
	t, err := openTable(bridge)
	if err != nil {
		return err
	}
	defer t.close()
	return errors.Join(t.remove(), forgetRoutes(bridge, toServices))
}
