// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// packet is one, from the network layer on.
type packet struct {
	at     time.Time
	data   []byte // as much as was kept
	length int    // as it was
	proto  uint16
	device string
	kind   uint8  // of packet: to this machine, from it and so on, as Linux has it
	hard   uint16 // the kind of interface
	from   []byte // hardware address
}

// dump is one run of tcpdump.
type dump struct {
	*applet.Call
	print *printer
	write *writer
	count int
	seen  int
}

func tcpdump(c *applet.Call) error {
	d := &dump{Call: c, print: &printer{call: c}}
	device := c.String("i,interface", "NAME", "any", "this interface only")
	count := c.Int("c", "N", 0, "end after N packets")
	to, from := c.String("w", "FILE", "", "write the packets to a file; - is standard output"),
		c.String("r", "FILE", "", "read packets from a file")
	size := c.Int("s", "BYTES", 262144, "how much of each packet to keep")
	list := c.Bool("D,list-interfaces", "list the interfaces")
	code := c.Bool("d", "print the filter's program, and end")
	d.print.flags(c)
	for _, f := range []string{"n", "l", "U", "p,no-promiscuous-mode"} {
		c.Do(f, "does nothing: it is so always", func() {})
	}
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	d.count = *count
	expression := strings.Join(c.Args, " ")
	filter, err := compile(expression, *from == "")
	if err != nil {
		return applet.Usage("%v", err)
	}
	switch {
	case *code:
		for i, ins := range filter {
			c.Printf("(%03d) %v\n", i, ins)
		}
		return nil
	case *list:
		all, err := net.Interfaces()
		for _, i := range all {
			c.Printf("%d.%s [%s]\n", i.Index, i.Name, i.Flags)
		}
		c.Println("any (all of them)")
		return err
	}
	if *to != "" {
		if d.write, err = create(c, *to, *size); err != nil {
			return err
		}
		defer d.write.close()
	}
	if *from != "" {
		return d.read(*from, filter)
	}
	return d.capture(*device, filter, max(*size, 64))
}

// got takes a packet; io.EOF is that there are enough.
func (d *dump) got(p packet) error {
	d.seen++
	var err error
	if d.write != nil {
		err = d.write.packet(p)
	} else {
		d.print.packet(p)
		err = d.Out.Flush()
	}
	if err == nil && d.seen == d.count {
		err = io.EOF
	}
	return err
}

// open makes a socket that gets every packet that passes the filter. It gets none before the filter is there.
func open(device string, filter []bpf.Instruction) (fd int, err error) {
	index := 0
	if device != "any" {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return 0, fmt.Errorf("interface %q: %w (-D lists them)", device, err)
		}
		index = i.Index
	}
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			err = fmt.Errorf("packets may not be captured here (needs CAP_NET_RAW: wherry debug --profile netadmin): %w", err)
		}
		return 0, err
	}
	raw, err := bpf.Assemble(filter)
	if err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	prog := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		prog[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	err = errors.Join(
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<20),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: swap(unix.ETH_P_ALL), Ifindex: index}))
	if err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func swap(n uint16) uint16 { return n<<8 | n>>8 }

// capture shows or writes packets until Ctrl-C.
func (d *dump) capture(device string, filter []bpf.Instruction, size int) error {
	fd, err := open(device, filter)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	interrupted, err := onSignal()
	if err != nil {
		return err
	}
	defer interrupted.Close()
	fmt.Fprintf(d.Err, "tcpdump: listening on %s; Ctrl-C ends it\n", device)
	d.print.live = true
	in := receiver{fd: fd, buf: make([]byte, size), control: make([]byte, 128), names: map[int]string{}}
	for {
		if more, err := in.wait(interrupted); err != nil {
			return err
		} else if !more {
			break
		}
		p, err := in.next()
		if errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.EINTR) {
			continue // an interface of several went down
		}
		if err != nil {
			return err
		}
		if err := d.got(p); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	stats, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return err
	}
	_ = d.Out.Flush()
	fmt.Fprintf(d.Err, "%d packets captured\n%d packets received by filter\n%d packets dropped by kernel\n", d.seen,
		stats.Packets, stats.Drops)
	return nil
}

// onSignal returns a file that can be polled: its other end is closed at Ctrl-C.
func onSignal() (*os.File, error) {
	interrupted, open, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	go func() {
		<-stop
		open.Close()
	}()
	return interrupted, nil
}

// receiver reads packets from a socket.
type receiver struct {
	fd           int
	buf, control []byte
	names        map[int]string // of interfaces, by their index
}

// wait waits for the next packet; false if it was interrupted.
func (r *receiver) wait(interrupted *os.File) (bool, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN},
			{Fd: int32(interrupted.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && fds[1].Revents == 0, err
	}
}

// next reads a packet. Its data lasts until the next one is read.
func (r *receiver) next() (packet, error) {
	n, control, _, addr, err := unix.Recvmsg(r.fd, r.buf, r.control, unix.MSG_TRUNC)
	if err != nil {
		return packet{}, err
	}
	p := packet{at: stamp(r.control[:control]), data: r.buf[:min(n, len(r.buf))], length: n}
	if ll, ok := addr.(*unix.SockaddrLinklayer); ok {
		p.proto, p.kind, p.hard, p.from = swap(ll.Protocol), ll.Pkttype, ll.Hatype, ll.Addr[:min(ll.Halen, 8)]
		p.device = r.device(ll.Ifindex)
	}
	return p, nil
}

// device is the name of an interface.
func (r *receiver) device(index int) string {
	if r.names[index] == "" {
		r.names[index] = fmt.Sprint("if", index)
		if i, err := net.InterfaceByIndex(index); err == nil {
			r.names[index] = i.Name
		}
	}
	return r.names[index]
}

// stamp is when the kernel saw a packet.
func stamp(aux []byte) time.Time {
	list, err := unix.ParseSocketControlMessage(aux)
	if err != nil {
		return time.Now()
	}
	for _, m := range list {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return time.Now()
}
