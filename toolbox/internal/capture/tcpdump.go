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
	wake, ended, err := os.Pipe()
	if err != nil {
		return err
	}
	defer wake.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	go func() {
		<-stop
		ended.Close()
	}()
	fmt.Fprintf(d.Err, "tcpdump: listening on %s; Ctrl-C ends it\n", device)
	d.print.live = true
	names := map[int]string{}
	buf, oob := make([]byte, size), make([]byte, 128)
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return err
		}
		if fds[1].Revents != 0 {
			break
		}
		n, aux, _, addr, err := unix.Recvmsg(fd, buf, oob, unix.MSG_TRUNC)
		if errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.EINTR) {
			continue // an interface of several went down
		}
		if err != nil {
			return err
		}
		p := packet{at: stamp(oob[:aux]), data: buf[:min(n, size)], length: n}
		if ll, ok := addr.(*unix.SockaddrLinklayer); ok {
			p.proto, p.kind, p.hard, p.from = swap(ll.Protocol), ll.Pkttype, ll.Hatype, ll.Addr[:min(ll.Halen, 8)]
			if names[ll.Ifindex] == "" {
				names[ll.Ifindex] = fmt.Sprint("if", ll.Ifindex)
				if i, err := net.InterfaceByIndex(ll.Ifindex); err == nil {
					names[ll.Ifindex] = i.Name
				}
			}
			p.device = names[ll.Ifindex]
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
