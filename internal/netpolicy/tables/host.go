// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/netfilter"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// version is that of the rules: what another has made is made again.
const version = "1"

// Host is the network of the node whose pods policies are for.
type Host struct {
	Bridge string
	Pods   []netip.Prefix // the networks of pods
}

// Name is that of the tables.
func (h Host) Name() string { return network.PoliciesTable(h.Bridge) }

// families are those that pods have.
func (h Host) families() (out []netfilter.Family) {
	for _, f := range netfilter.Families() {
		if slices.ContainsFunc(h.Pods, func(p netip.Prefix) bool { return p.Addr().Is6() == f.Six }) {
			out = append(out, f)
		}
	}
	return out
}

// table is our tables, and a connection to speak about them.
type table struct {
	host Host
	conn *nftables.Conn
	t    *nftables.Table // inet
	l2   *nftables.Table // bridge
	id   uint32          // of the last set of this transaction
}

func (h Host) open() (*table, error) {
	conn, err := netfilter.Open()
	if err != nil {
		return nil, err
	}
	return &table{host: h, conn: conn, t: &nftables.Table{Name: h.Name(), Family: nftables.TableFamilyINet},
		l2: &nftables.Table{Name: h.Name(), Family: nftables.TableFamilyBridge}}, nil
}

func (t *table) close() { _ = t.conn.CloseLasting() }

// Watch signals when another process has changed our tables, by a token in the channel that it returns, until ctx ends.
// When no notice can be received any more, an error comes from the other channel.
func (h Host) Watch(ctx context.Context) (<-chan struct{}, <-chan error, error) {
	return netfilter.Watch(ctx, h.Name())
}

// Remove takes the tables away with all that is in them. Ones that are not there are fine; they are looked for first,
// as a kernel may have to load what tables of bridges need.
func (h Host) Remove() error {
	t, err := h.open()
	if err != nil {
		return err
	}
	defer t.close()
	var errs []error
	for _, each := range []*nftables.Table{t.t, t.l2} {
		found, err := t.conn.ListTablesOfFamily(each.Family)
		if err != nil {
			errs = append(errs, fmt.Errorf("nftables: list tables: %w", err))
			continue
		}
		if !slices.ContainsFunc(found, func(o *nftables.Table) bool { return o.Name == each.Name }) {
			continue
		}
		t.conn.DelTable(each)
		if err := t.conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("remove nftables table %s: %w", each.Name, err))
		}
	}
	return errors.Join(errs...)
}

func noBridgeFamily(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT)
}

// mac is the bridge's own address.
func (h Host) mac() (net.HardwareAddr, error) { return network.BridgeAddress(h.Bridge) }
