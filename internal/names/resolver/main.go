// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/names/wire"
	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

const (
	// memory is what the collector keeps the heap within, if it can; pace is how often it runs else.
	memory, pace = 10 << 20, 50
	exitFailed   = 1
	// saveRest is the least time between two writings of the file.
	saveRest = time.Second
)

// Main is the process: its arguments are its folder, the address that it answers at, and what identifies its build
// of the program. What goes wrong is written to out; it reports on file descriptor 3 that it answers.
func Main(args []string, out io.Writer) int {
	debug.SetGCPercent(pace)
	debug.SetMemoryLimit(memory)
	if len(args) != 3 {
		fmt.Fprintf(out, "usage: wherry %s FOLDER ADDRESS PROGRAM; wherry runs this by itself\n", wire.Word)
		return exitFailed
	}
	address, err := netip.ParseAddr(args[1])
	if err != nil {
		fmt.Fprintln(out, "error:", err)
		return exitFailed
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	p := &process{dir: args[0], program: args[2], out: out}
	if err := p.run(ctx, address); err != nil {
		fmt.Fprintln(out, "error:", err)
		return exitFailed
	}
	return 0
}

// process is one resolver.
type process struct {
	dir     string
	program string
	out     io.Writer // for what goes wrong
	lock    *os.File
	state   *state
	listen  *listener
	forward *forwarder
	left    chan struct{} // closed when a newer one has taken over
	ended   context.CancelFunc
}

// errHeld says that there is a resolver of this folder.
var errHeld = errors.New("another resolver is at work")

func (p *process) run(ctx context.Context, address netip.Addr) error {
	ctx, p.ended = context.WithCancel(ctx)
	defer p.ended()
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	taken, err := p.takeOver(address)
	if err != nil {
		return err
	}
	if p.lock, err = lock(p.dir); err != nil {
		return err
	}
	defer p.lock.Close()
	picture, err := load(p.dir)
	if err != nil {
		fmt.Fprintln(p.out, "warning: the saved DNS data cannot be read:", err)
	}
	p.state, p.left = newState(picture), make(chan struct{})
	if p.listen, err = listenAt(address, picture.Address, taken); err != nil {
		return err
	}
	p.forward = newForwarder(p.state, address)
	p.listen.answer = answerer{state: p.state, forward: p.forward, turn: new(atomic.Uint32), locals: &locals{}}
	l, err := socket.Listen(wire.Socket(p.dir))
	if err != nil {
		return err
	}
	if err := p.endWithFolder(); err != nil {
		return err
	}
	p.listen.serve(ctx)
	go p.control(ctx, l)
	ready()
	p.keepFile(ctx)
	l.Close()
	p.listen.close()
	return nil
}

// lock takes the folder's lock; errHeld if somebody else has it.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(wire.Lock(dir), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errHeld
	}
	return nil, fmt.Errorf("lock %s: %w", dir, err)
}

// readyFile is the descriptor at which whoever has started the process waits for it.
const readyFile = 3

// ready reports that.
func ready() {
	f := os.NewFile(readyFile, "ready")
	if f == nil {
		return
	}
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		_, _ = f.Write([]byte("ready\n"))
		f.Close()
	}
}

// pictureFile is where the world is kept.
func pictureFile(dir string) string { return filepath.Join(dir, "world") }

func load(dir string) (wire.Picture, error) {
	f, err := os.Open(pictureFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return wire.Picture{}, nil
	}
	if err != nil {
		return wire.Picture{}, err
	}
	defer f.Close()
	p, err := wire.ReadPicture(f)
	if err != nil {
		return wire.Picture{Address: p.Address}, err
	}
	return p, nil
}

// keepFile writes the world whenever it has changed, until ctx ends, and then once more.
func (p *process) keepFile(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			p.save()
			return
		case <-p.state.changed:
		}
		p.save()
		select {
		case <-ctx.Done():
		case <-time.After(saveRest):
		}
	}
}

// save writes the world. A disk that is full costs nothing but that: the server sends all of it again.
func (p *process) save() {
	picture, ok := p.state.picture()
	if !ok || p.hasLeft() { // the file is the other one's then
		return
	}
	picture.Address = p.listen.address
	tmp := pictureFile(p.dir) + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	if err = errors.Join(wire.WritePicture(f, picture), f.Close()); err == nil {
		err = os.Rename(tmp, pictureFile(p.dir))
	}
	if err != nil {
		fmt.Fprintln(p.out, "warning: the DNS data cannot be saved:", err)
	}
}

// endWithFolder has the process end when its folder is removed.
func (p *process) endWithFolder() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch %s: %w", p.dir, err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, p.dir, unix.IN_DELETE); err != nil {
		f.Close()
		return fmt.Errorf("watch %s: %w", p.dir, err)
	}
	go func() {
		defer f.Close()
		for { // of the folder's own end nobody hears while its socket is open
			if _, err := f.Read(make([]byte, 16*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))); err != nil {
				return
			}
			if _, err := os.Stat(wire.Lock(p.dir)); errors.Is(err, os.ErrNotExist) {
				p.ended()
				return
			}
		}
	}()
	return nil
}
