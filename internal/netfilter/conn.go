// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// buffers are large enough for the transaction of a start with thousands of services or policies: the kernel takes it
// as one message, and answers each part.
const buffers = 32 << 20

// Open makes a connection that is closed with CloseLasting.
func Open() (*nftables.Conn, error) {
	conn, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(c *netlink.Conn) error {
		if err := c.SetReadBuffer(buffers); err != nil {
			return err
		}
		return c.SetWriteBuffer(buffers)
	}))
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	return conn, nil
}

// readTries is how often a reading is begun anew because the kernel's tables, anybody's, changed in its middle.
const readTries = 20

// Read has read look at the kernel's tables until nothing has changed while it did.
func Read(read func() error) error {
	for try := 1; ; try++ {
		before, err := Generation()
		if err != nil {
			return fmt.Errorf("nftables: %w", err)
		}
		err = read()
		after, gerr := Generation()
		if err = errors.Join(err, gerr); err == nil && before == after {
			return nil
		}
		if err == nil {
			err = errors.New("it changes all the time")
		}
		if try == readTries {
			return err
		}
	}
}

// Elements are those of a set; of one that is not there none.
func Elements(conn *nftables.Conn, s *nftables.Set) ([]nftables.SetElement, error) {
	elems, err := conn.GetSetElements(s)
	// The library drops the errno on the way, hence the text.
	if err != nil && (errors.Is(err, unix.ENOENT) || strings.Contains(err.Error(), unix.ENOENT.Error())) {
		return nil, nil
	}
	return elems, err
}

// Generation is a number that changes with the kernel's tables, anybody's.
func Generation() (uint32, error) {
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
