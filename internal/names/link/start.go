// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/internal/names/wire"
	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

const (
	// startPatience is how long a resolver may take to answer, talk how long to say who it is.
	startPatience = 10 * time.Second
	talk          = 5 * time.Second
)

// Resolver says which one is wanted.
type Resolver struct {
	Dir     string     // its folder
	Address netip.Addr // where pods are answered
	Command []string   // what starts it
	Program string     // identifies this build of the program
}

// Start returns where the resolver answers, when it does. started is false if it was at work already.
func (r Resolver) Start(ctx context.Context) (at netip.AddrPort, started bool, err error) {
	hello, err := r.look(ctx)
	if err == nil && hello.Protocol == wire.Protocol && hello.Program == r.Program &&
		hello.Address.Addr() == r.Address {
		return hello.Address, false, nil
	}
	if err == nil && hello.Protocol != wire.Protocol { // it may not know how to hand over
		if err := End(ctx, r.Dir); err != nil {
			return at, false, err
		}
	}
	if err := r.run(ctx); err != nil {
		return at, false, err
	}
	if hello, err = r.look(ctx); err != nil {
		return at, true, err
	}
	return hello.Address, true, nil
}

// look asks who is there.
func (r Resolver) look(ctx context.Context) (wire.Hello, error) {
	c, _, hello, err := dial(ctx, r.Dir, wire.Want{What: wire.Feed})
	if err != nil {
		return wire.Hello{}, err
	}
	c.Close()
	return hello, nil
}

// run starts the process, in a session of its own, and waits until it answers.
func (r Resolver) run(ctx context.Context) error {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return fmt.Errorf("resolver: %w", err)
	}
	output := filepath.Join(r.Dir, "output")
	out, err := os.OpenFile(output, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("resolver: %w", err)
	}
	defer out.Close()
	ready, signal, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("resolver: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command(r.Command[0], append(r.Command[1:len(r.Command):len(r.Command)], r.Dir, r.Address.String(),
		r.Program)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.Dir = out, out, []*os.File{signal}, "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	signal.Close()
	if err != nil {
		return fmt.Errorf("resolver: %w", err)
	}
	go func() { _ = cmd.Wait() }() // it is taken from the table of processes if it ends before we do
	if err := ready.SetReadDeadline(time.Now().Add(startPatience)); err != nil {
		return fmt.Errorf("resolver: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.ReadFull(ready, make([]byte, len("ready\n"))); err != nil {
		text, _ := os.ReadFile(output) // without it there is only the error
		if line := strings.TrimSpace(string(text)); line != "" {
			return fmt.Errorf("resolver: %s", line)
		}
		return fmt.Errorf("resolver: it does not answer: %w (what it says is in %s)", err, output)
	}
	return nil
}

// dial connects to the resolver of a folder, says what is wanted and hears who it is.
func dial(ctx context.Context, dir string, want wire.Want) (net.Conn, *wire.Reader, wire.Hello, error) {
	var hello wire.Hello
	c, err := socket.Dial(ctx, wire.Socket(dir))
	if err != nil {
		return nil, nil, hello, fmt.Errorf("resolver: %w", err)
	}
	_ = c.SetDeadline(time.Now().Add(talk))
	lines := wire.NewReader(c)
	if err = wire.Write(c, want); err == nil {
		err = lines.Read(&hello)
	}
	if err != nil {
		c.Close()
		return nil, nil, hello, fmt.Errorf("resolver: it does not say who it is: %w", err)
	}
	_ = c.SetDeadline(time.Time{})
	return c, lines, hello, nil
}

// Ask asks the resolver of a data folder what a pod has asked.
func Ask(ctx context.Context, dir, uid string) (a wire.Answer, err error) {
	c, lines, _, err := dial(ctx, dir, wire.Want{What: wire.Asked, Pod: uid})
	if err != nil {
		return a, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(talk))
	return a, lines.Read(&a)
}

// End ends the resolver of a folder, and waits for its end. None is there: nothing is done.
func End(ctx context.Context, dir string) error {
	c, lines, hello, err := dial(ctx, dir, wire.Want{What: wire.End})
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(talk))
	var more wire.Notice
	if err := lines.Read(&more); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) || !awaitLock(dir) {
		return fmt.Errorf("the resolver of %s does not end: end process %d", dir, hello.PID)
	}
	return nil
}

// awaitLock returns when nobody holds a folder's lock.
func awaitLock(dir string) bool {
	f, err := os.Open(wire.Lock(dir))
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	done := make(chan error, 1)
	go func() {
		defer f.Close()
		done <- syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}()
	select {
	case err := <-done:
		return err == nil
	case <-time.After(talk):
		return false
	}
}
