// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// State is what the kernel has: of the chains that are always there the fingerprints, and what services have made.
type State struct {
	Table bool // there is one
	Base  map[string]string
	decide.There
}

// readTries is how often a reading is begun anew because the kernel's tables, anybody's, changed in its middle.
const readTries = 20

// Read says what there is. A table that is not there has nothing.
func (h Host) Read() (State, error) {
	t, err := h.open()
	if err != nil {
		return State{}, err
	}
	defer t.close()
	for try := 1; ; try++ {
		before, err := generation()
		if err != nil {
			return State{}, fmt.Errorf("nftables: %w", err)
		}
		state, err := t.read()
		after, gerr := generation()
		if err = errors.Join(err, gerr); err == nil && before == after {
			return state, nil
		}
		if try == readTries {
			return State{}, fmt.Errorf("nftables: read table %s: %w", t.t.Name,
				cmpErr(err, errors.New("it changes all the time")))
		}
	}
}

// generation is a number that changes with the kernel's tables, anybody's.
func generation() (uint32, error) {
	req := nl.NewNetlinkRequest(nftTables|unix.NFT_MSG_GETGEN, 0)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC, Version: nl.NFNETLINK_V0})
	messages, err := req.Execute(unix.NETLINK_NETFILTER, nftTables|unix.NFT_MSG_NEWGEN)
	if err != nil {
		return 0, err
	}
	for _, m := range messages {
		attrs, err := attributes(m)
		if err != nil {
			return 0, err
		}
		for _, a := range attrs {
			if kindOf(a) == genID && len(a.Value) == 4 {
				return binary.BigEndian.Uint32(a.Value), nil
			}
		}
	}
	return 0, errors.New("the kernel does not tell the generation of its tables")
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func (t *table) read() (State, error) {
	s := State{Base: map[string]string{}, There: decide.There{Chains: map[string]string{}, Clients: map[string]bool{},
		Keys: map[decide.Key]string{}, Beyond: map[decide.Beyond]bool{}}}
	found, err := t.conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return s, err
	}
	for _, other := range found {
		s.Table = s.Table || other.Name == t.t.Name
	}
	if !s.Table {
		return s, nil
	}
	if err := t.readChains(&s); err != nil {
		return s, err
	}
	return s, t.readSets(&s)
}

func (t *table) readChains(s *State) error {
	chains, err := t.conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return err
	}
	for _, ch := range chains {
		if ch.Table.Name != t.t.Name {
			continue
		}
		rules, err := t.conn.GetRules(t.t, ch)
		if err != nil {
			return err
		}
		if strings.Contains(ch.Name, "/") {
			s.Chains[ch.Name] = printOf(rules)
		} else {
			s.Base[ch.Name] = printOf(rules)
		}
	}
	return nil
}

// printOf is the fingerprint that the rules of a chain carry; empty if they are not those that were made together.
func printOf(rules []*nftables.Rule) string {
	whole := ""
	for at, r := range rules {
		fingerprint, i, n, ok := parseMark(r.UserData)
		if !ok || i != at || n != len(rules) || at > 0 && fingerprint != whole {
			return ""
		}
		whole = fingerprint
	}
	return whole
}

func (t *table) readSets(s *State) error {
	sets, err := t.conn.GetSets(t.t)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if strings.Contains(set.Name, "/") && !set.IsMap {
			s.Clients[set.Name] = set.KeyType.Bytes == 16
		}
	}
	for _, f := range families() {
		for _, place := range []decide.Place{decide.Cluster, decide.External, decide.NodePort} {
			elems, err := t.elementsOf(t.named(places(place), f))
			if err != nil {
				return err
			}
			for _, e := range elems {
				if a, proto, port, ok := parseKey(e.Key); ok {
					s.Keys[decide.Key{Place: place, Six: f.six, Addr: a, Proto: proto, Port: port}] = e.Comment
				}
			}
		}
		elems, err := t.elementsOf(t.named("beyond", f))
		if err != nil {
			return err
		}
		for _, e := range elems {
			if a, proto, port, ok := parseKey(e.Key); ok {
				s.Beyond[decide.Beyond{At: addrPort(a, port), Proto: proto}] = true
			}
		}
	}
	return nil
}

// elementsOf a set that is not there are none.
func (t *table) elementsOf(s *nftables.Set) ([]nftables.SetElement, error) {
	elems, err := t.conn.GetSetElements(s)
	// The library drops the errno on the way, hence the text.
	if err != nil && (errors.Is(err, unix.ENOENT) || strings.Contains(err.Error(), unix.ENOENT.Error())) {
		return nil, nil
	}
	return elems, err
}
