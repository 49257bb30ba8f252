// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Attributes of nf_tables.h that no library has a name for.
const (
	nftTables  = unix.NFNL_SUBSYS_NFTABLES << 8
	tableName  = 1 // NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE and NFTA_SET_ELEM_LIST_TABLE
	genID      = 1 // NFTA_GEN_ID
	genProcPID = 2 // NFTA_GEN_PROC_PID
)

// Watch signals when another process has changed tables of a name, of whatever family, by a token in the channel that
// it returns, until ctx ends. When no notice can be received any more, an error comes from the other channel.
func Watch(ctx context.Context, table string) (<-chan struct{}, <-chan error, error) {
	socket, err := nl.Subscribe(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, nil, fmt.Errorf("watch the machine's nftables: %w", err)
	}
	context.AfterFunc(ctx, func() { socket.Close() })
	changed, failed := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		n := notices{table: table, self: uint32(os.Getpid())}
		for {
			messages, _, err := socket.Receive()
			if err != nil && !errors.Is(err, unix.ENOBUFS) { // that one says only that some were lost
				failed <- err
				return
			}
			token := err != nil
			for _, m := range messages {
				token = n.foreign(m) || token
			}
			if !token {
				continue
			}
			select {
			case changed <- struct{}{}:
			default: // one waits to be taken, and will be after this
			}
		}
	}()
	return changed, failed, nil
}

// notices reads what the kernel reports of one transaction after the other. Whose it was stands at its end.
type notices struct {
	table string
	self  uint32
	ours  bool // something of our table was in this transaction
}

// foreign says, at the end of a transaction, whether it was somebody else's and about our table. A notice that is not
// understood is taken for one.
func (n *notices) foreign(m syscall.NetlinkMessage) bool {
	attrs, err := attributes(m.Data)
	if err != nil {
		return true
	}
	end := int(m.Header.Type)&^nftTables == unix.NFT_MSG_NEWGEN
	self := false
	for _, a := range attrs {
		switch kind := kindOf(a); {
		case end && kind == genProcPID:
			self = len(a.Value) == 4 && binary.BigEndian.Uint32(a.Value) == n.self
		case !end && kind == tableName:
			n.ours = n.ours || strings.TrimRight(string(a.Value), "\x00") == n.table
		}
	}
	if !end {
		return false
	}
	ours := n.ours
	n.ours = false
	return ours && !self
}

// attributes are those of a message of nftables.
func attributes(data []byte) ([]syscall.NetlinkRouteAttr, error) {
	const header = 4 // struct nfgenmsg
	if len(data) < header {
		return nil, errors.New("a message is too short")
	}
	// The last one may lack its padding, which the parser wants.
	return nl.ParseRouteAttr(append(slices.Clip(data[header:]), make([]byte, -len(data)&3)...))
}

func kindOf(a syscall.NetlinkRouteAttr) int {
	return int(a.Attr.Type) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
}
