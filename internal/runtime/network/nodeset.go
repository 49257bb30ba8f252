// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// nodeSet is the set of the networks of other nodes' pods. As of host ports, its elements stay when the table is made
// anew: until a server that starts knows the nodes, those that are there are the ones of before.
func (t *table) nodeSet(f family) *nftables.Set {
	name := "nodes4"
	if f.addrLen == 16 {
		name = "nodes6"
	}
	return &nftables.Set{Table: t.t, Name: name, KeyType: f.addrType, Interval: true}
}

// setNodes makes the sets hold these networks, in one transaction.
func (t *table) setNodes(list []way) error {
	t.conn.AddTable(t.t)
	for _, f := range []family{ipv4(), ipv6()} {
		set := t.nodeSet(f)
		if err := t.conn.AddSet(set, nil); err != nil {
			return err
		}
		t.conn.FlushSet(set)
		elems := intervals(list, f)
		if len(elems) == 0 {
			continue
		}
		if err := t.conn.SetAddElements(set, elems); err != nil {
			return err
		}
	}
	if err := t.conn.Flush(); err != nil {
		return fmt.Errorf("nftables: set networks of other nodes: %w", err)
	}
	return nil
}

// intervals are the elements of networks that do not overlap, sorted. One that begins where another ends continues it.
func intervals(list []way, f family) (out []nftables.SetElement) {
	for _, w := range list {
		if familyOf(w.to.Addr()).proto != f.proto {
			continue
		}
		start := w.to.Masked().Addr()
		if last := len(out) - 1; last >= 0 && out[last].IntervalEnd && slices.Equal(out[last].Key, start.AsSlice()) {
			out = out[:last]
		} else {
			out = append(out, nftables.SetElement{Key: start.AsSlice()})
		}
		if end := lastOf(w.to).Next(); end.IsValid() {
			out = append(out, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
		}
	}
	return out
}

// lastOf is the last address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// hasNodes reports whether the sets hold these networks, and no others.
func (t *table) hasNodes(list []way) (bool, error) {
	for _, f := range []family{ipv4(), ipv6()} {
		have, err := dump(func() ([]nftables.SetElement, error) { return t.conn.GetSetElements(t.nodeSet(f)) })
		if missingErr(err) {
			return false, nil // the table is gone
		}
		if err != nil {
			return false, fmt.Errorf("nftables: networks of other nodes: %w", err)
		}
		if !slices.Equal(bounds(have), bounds(intervals(list, f))) {
			return false, nil
		}
	}
	return true, nil
}

// bounds are where intervals begin and end, without the one that the kernel begins the whole with.
func bounds(elems []nftables.SetElement) (out []string) {
	for _, e := range elems {
		a, _ := netip.AddrFromSlice(e.Key)
		if e.IntervalEnd && a.IsUnspecified() {
			continue
		}
		out = append(out, fmt.Sprint(a, e.IntervalEnd))
	}
	slices.Sort(out)
	return out
}

// toNode matches packets to a pod on another node.
func (t *table) toNode(f family) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseNetworkHeader, Offset: f.dstAt, Len: f.addrLen},
		&expr.Lookup{SourceRegister: reg1, SetName: t.nodeSet(f).Name},
	}
}
