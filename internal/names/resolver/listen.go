// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/wherryproject/wherry/internal/names"
)

const (
	// ports is how many free ports are tried: one must be free over UDP and TCP.
	ports = 20
	// idle is how long a TCP connection may say nothing.
	idle = 10 * time.Second
)

// listener has the two sockets.
type listener struct {
	address netip.AddrPort
	udp     *net.UDPConn
	tcp     *net.TCPListener
	answer  answerer

	readers sync.WaitGroup // of the two sockets
	streams *streams
	leaving chan struct{}
}

// sockets are those that another resolver has handed over.
type sockets struct{ udp, tcp *os.File }

// listenAt listens at the address: with sockets that were taken over, at the port of last time, or at any free one.
func listenAt(address netip.Addr, last netip.AddrPort, taken *sockets) (*listener, error) {
	l := &listener{streams: newStreams(maxStreams), leaving: make(chan struct{})}
	if taken != nil {
		err := l.use(*taken)
		if err == nil && l.address.Addr() == address {
			return l, nil
		}
		l.close()
	}
	port := uint16(0)
	if last.Addr() == address {
		port = last.Port()
	}
	var err error
	for range ports {
		if err = l.bind(netip.AddrPortFrom(address, port)); err == nil {
			return l, nil
		}
		port = 0
	}
	return nil, fmt.Errorf("answer at %s: %w", address, err)
}

func (l *listener) bind(at netip.AddrPort) (err error) {
	if l.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)); err != nil {
		return err
	}
	l.address = l.udp.LocalAddr().(*net.UDPAddr).AddrPort()
	l.address = netip.AddrPortFrom(l.address.Addr().Unmap(), l.address.Port())
	if l.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(l.address)); err != nil {
		l.udp.Close()
	}
	return err
}

// use takes sockets that are open.
func (l *listener) use(s sockets) error {
	defer s.udp.Close()
	defer s.tcp.Close()
	udp, err := net.FilePacketConn(s.udp)
	if err != nil {
		return err
	}
	tcp, err := net.FileListener(s.tcp)
	if err != nil {
		udp.Close()
		return err
	}
	var isUDP, isTCP bool
	l.udp, isUDP = udp.(*net.UDPConn)
	l.tcp, isTCP = tcp.(*net.TCPListener)
	if !isUDP || !isTCP {
		return errors.New("these are not the sockets of a resolver")
	}
	at := l.udp.LocalAddr().(*net.UDPAddr).AddrPort()
	l.address = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	return nil
}

func (l *listener) close() {
	if l.udp != nil {
		l.udp.Close()
	}
	if l.tcp != nil {
		l.tcp.Close()
	}
}

// files are the sockets, for another process.
func (l *listener) files() (udp, tcp *os.File, err error) {
	if udp, err = l.udp.File(); err != nil {
		return nil, nil, err
	}
	if tcp, err = l.tcp.File(); err != nil {
		udp.Close()
	}
	return udp, tcp, err
}

// leave ends the reading, and nothing else: what comes from now on is for who has the sockets too.
func (l *listener) leave() {
	close(l.leaving)
	past := time.Unix(1, 0)
	_ = l.udp.SetReadDeadline(past)
	_ = l.tcp.SetDeadline(past)
	l.readers.Wait()
}

// serve answers until the sockets are closed or left.
func (l *listener) serve(ctx context.Context) {
	l.readers.Go(func() { l.datagrams(ctx) })
	l.readers.Go(func() { l.connections(ctx) })
}

// left reports whether an error is the end of the reading.
func (l *listener) left(err error) bool {
	select {
	case <-l.leaving:
		return true
	default:
		return errors.Is(err, net.ErrClosed)
	}
}

// datagrams answers over UDP. What can be answered at once is, without a goroutine of its own.
func (l *listener) datagrams(ctx context.Context) {
	buffer := make([]byte, names.Largest)
	for {
		n, from, err := l.udp.ReadFromUDPAddrPort(buffer)
		if err != nil {
			if l.left(err) {
				return
			}
			continue // of one datagram: a client that has gone
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		send := func(message []byte) { _, _ = l.udp.WriteToUDPAddrPort(message, from) }
		l.answer.datagram(ctx, buffer[:n], from.Addr(), send)
	}
}

func (l *listener) connections(ctx context.Context) {
	for {
		c, err := l.tcp.AcceptTCP()
		if err != nil {
			if l.left(err) {
				return
			}
			select { // too many open files: it passes
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		from, ok := netip.AddrFromSlice(c.RemoteAddr().(*net.TCPAddr).IP)
		if from = from.Unmap(); !ok || !l.streams.enter(c, from) {
			c.Close()
			continue
		}
		go func() {
			defer l.streams.leave(c, from)
			defer c.Close()
			l.stream(ctx, c, from)
		}()
	}
}

// stream answers over one TCP connection, one question after the other.
func (l *listener) stream(ctx context.Context, c *net.TCPConn, from netip.Addr) {
	for {
		_ = c.SetDeadline(time.Now().Add(idle))
		packet, err := readMessage(c)
		if err != nil {
			return
		}
		out := l.answer.whole(ctx, packet, from)
		if out == nil || writeMessage(c, out) != nil {
			return
		}
	}
}

// readMessage and writeMessage are how messages go over TCP.
func readMessage(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	packet := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, packet)
	return packet, err
}

func writeMessage(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}
