// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/net/bpf"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// Kinds of link in files.
const (
	ethernet = 1
	rawIP    = 101
	cooked   = 113 // LINKTYPE_LINUX_SLL
	cooked2  = 276
)

// writer writes packets to a file, with the header that Linux has for any interface.
type writer struct {
	out  *bufio.Writer
	file *os.File
	size int
}

func create(c *applet.Call, name string, size int) (*writer, error) {
	w := &writer{out: c.Out, size: size}
	if name != "-" {
		f, err := os.Create(name)
		if err != nil {
			return nil, err
		}
		w.file, w.out = f, bufio.NewWriter(f)
	}
	head := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	head = binary.LittleEndian.AppendUint16(head, 2)
	head = binary.LittleEndian.AppendUint16(head, 4)
	for _, v := range []uint32{0, 0, 262144, cooked} {
		head = binary.LittleEndian.AppendUint32(head, v)
	}
	_, err := w.out.Write(head)
	return w, errors.Join(err, w.out.Flush())
}

// packet writes one at once, so that the file is whole whenever the program is ended.
func (w *writer) packet(p packet) error {
	data := p.data[:min(len(p.data), w.size)]
	var b []byte
	for _, v := range []int{int(p.at.Unix()), p.at.Nanosecond() / 1000, len(data) + 16, p.length + 16} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(p.kind))
	b = binary.BigEndian.AppendUint16(b, p.hard)
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.from)))
	var from [8]byte
	copy(from[:], p.from)
	b = binary.BigEndian.AppendUint16(append(b, from[:]...), p.proto)
	_, err := w.out.Write(append(b, data...))
	return errors.Join(err, w.out.Flush())
}

func (w *writer) close() {
	if w.file != nil {
		w.file.Close()
	}
}

// read shows the packets of a file that pass the filter.
func (d *dump) read(name string, filter []bpf.Instruction) error {
	in, err := d.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	vm, err := bpf.NewVM(filter)
	if err != nil {
		return err
	}
	r := bufio.NewReader(in)
	head := make([]byte, 24)
	if _, err := io.ReadFull(r, head); err != nil {
		return fmt.Errorf("%s: it has no packets: %w", name, err)
	}
	order, unit := byteOrder(head)
	if order == nil {
		return fmt.Errorf("%s is not a file of packets as tcpdump -w writes it (pcapng is not known here)", name)
	}
	link := order.Uint32(head[20:]) & 0xffff
	for {
		h := make([]byte, 16)
		if _, err := io.ReadFull(r, h); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s is cut off: %w", name, err)
		}
		kept := order.Uint32(h[8:])
		if kept > 1<<20 {
			return fmt.Errorf("%s is damaged: a packet of %d bytes", name, kept)
		}
		data := make([]byte, kept)
		if _, err := io.ReadFull(r, data); err != nil {
			return fmt.Errorf("%s is cut off: %w", name, err)
		}
		p := packet{at: time.Unix(int64(order.Uint32(h)), int64(order.Uint32(h[4:]))*unit), data: data,
			length: int(order.Uint32(h[12:])), kind: unknownKind}
		if !p.unwrap(link) {
			return fmt.Errorf("%s has packets of a link of kind %d, which is not known here", name, link)
		}
		if n, err := vm.Run(append(binary.BigEndian.AppendUint16(nil, p.proto), p.data...)); err != nil || n == 0 {
			continue
		}
		if err := d.got(p); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// byteOrder reads a file's first word: how numbers are written, and how many nanoseconds the small unit of time has.
func byteOrder(head []byte) (binary.ByteOrder, int64) {
	for _, o := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch o.Uint32(head) {
		case 0xa1b2c3d4:
			return o, 1000
		case 0xa1b23c4d:
			return o, 1
		}
	}
	return nil, 0
}

// unwrap takes the link's header off.
func (p *packet) unwrap(link uint32) bool {
	skip := map[uint32]int{ethernet: 14, rawIP: 0, cooked: 16, cooked2: 20}
	n, ok := skip[link]
	if !ok || len(p.data) < n {
		return ok // one that was cut within the header has no protocol
	}
	switch h := p.data; link {
	case ethernet:
		p.proto, p.from = binary.BigEndian.Uint16(h[12:]), h[6:12]
		for p.proto == 0x8100 && len(h) >= n+4 { // within a VLAN
			p.proto = binary.BigEndian.Uint16(h[n+2:])
			n += 4
		}
	case cooked:
		p.kind, p.proto, p.from = h[1], binary.BigEndian.Uint16(h[14:]), h[6:6+min(8, int(h[5]))]
	case cooked2:
		p.kind, p.proto = h[10], binary.BigEndian.Uint16(h)
	case rawIP:
		if p.proto = ipv4; len(h) > 0 && h[0]>>4 == 6 {
			p.proto = ipv6
		}
	}
	p.data, p.length = p.data[n:], p.length-n
	return true
}
