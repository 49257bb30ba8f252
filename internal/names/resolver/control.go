// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/wire"
	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

// wantPatience is how long a connection may take to say what it wants.
const wantPatience = 5 * time.Second

// control serves the socket until it is closed.
func (p *process) control(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		go func() {
			defer c.Close()
			p.converse(ctx, c)
		}()
	}
}

func (p *process) converse(ctx context.Context, c net.Conn) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(wantPatience))
	lines := wire.NewReader(c)
	var want wire.Want
	if lines.Read(&want) != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	hello := wire.Hello{Protocol: wire.Protocol, Program: p.program, PID: os.Getpid(), Address: p.listen.address}
	if want.What != wire.HandOver && wire.Write(c, hello) != nil {
		return
	}
	switch want.What {
	case wire.Feed:
		p.feed(c, lines)
	case wire.Asked:
		_ = wire.Write(c, p.state.asked(want.Pod))
	case wire.HandOver:
		p.handOver(c, hello)
	case wire.End:
		p.ended()
	}
}

// feed takes what a server sends until it goes.
func (p *process) feed(c net.Conn, lines *wire.Reader) {
	troubles, done := p.state.troubles()
	gone := make(chan struct{})
	defer done()
	defer close(gone)
	go func() {
		for {
			select {
			case <-gone:
				return
			case t := <-troubles:
				_ = wire.Write(c, wire.Notice{Trouble: t})
			}
		}
	}()
	settings := p.state.now()
	var whole *names.World // while one is being received
	for {
		var l wire.Line
		if lines.Read(&l) != nil {
			return
		}
		switch {
		case l.Settings != nil:
			settings = *l.Settings
		case l.Begin:
			whole = names.New(settings.Zone)
		case l.Change != nil && whole != nil:
			whole.Apply(*l.Change)
		case l.Change != nil:
			p.state.apply(*l.Change)
		case l.End && whole != nil:
			p.state.replace(whole, settings)
			whole = nil
		}
	}
}

// handOver gives the sockets to another resolver of the same folder, and ends. What has not been read by then waits in
// them.
func (p *process) handOver(c net.Conn, hello wire.Hello) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return
	}
	udp, tcp, err := p.listen.files()
	if err != nil {
		return
	}
	defer udp.Close()
	defer tcp.Close()
	p.listen.leave()
	p.save()
	close(p.left)
	p.lock.Close() // it is the other one's now
	text := []byte(fmt.Sprintf("%d %s\n", hello.Protocol, hello.Address))
	_, _, err = u.WriteMsgUnix(text, unix.UnixRights(int(udp.Fd()), int(tcp.Fd())), nil)
	if err != nil {
		fmt.Fprintln(p.out, "warning: the sockets cannot be handed over:", err)
	}
	for range cap(p.forward.slots) { // what has been asked is answered
		select {
		case p.forward.slots <- struct{}{}:
		case <-time.After(patience):
		}
	}
	p.ended()
}

// hasLeft reports whether a newer resolver has taken over.
func (p *process) hasLeft() bool {
	select {
	case <-p.left:
		return true
	default:
		return false
	}
}

// takeOver asks the resolver of this folder for its sockets, if there is one. It ends then.
func (p *process) takeOver(address netip.Addr) (*sockets, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wantPatience)
	defer cancel()
	c, err := socket.Dial(ctx, wire.Socket(p.dir))
	if err != nil {
		return nil, nil // there is none
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(wantPatience))
	if err := wire.Write(c, wire.Want{What: wire.HandOver}); err != nil {
		return nil, err
	}
	text, rights := make([]byte, 256), make([]byte, unix.CmsgSpace(8))
	_, n, _, _, err := c.(*net.UnixConn).ReadMsgUnix(text, rights)
	if err != nil {
		return nil, fmt.Errorf("take over from the resolver before: %w", err)
	}
	fds, err := received(rights[:n])
	if err != nil || len(fds) != 2 {
		return nil, errors.Join(err, errors.New("take over from the resolver before: it has handed nothing over"))
	}
	return &sockets{udp: os.NewFile(uintptr(fds[0]), "udp"), tcp: os.NewFile(uintptr(fds[1]), "tcp")}, nil
}

// received are the descriptors that have come with a message.
func received(rights []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		got, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range got {
			unix.CloseOnExec(fd)
		}
		fds = append(fds, got...)
	}
	return fds, nil
}
