// SPDX-License-Identifier: Apache-2.0

package logind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

const (
	service   = "org.freedesktop.login1"
	object    = dbus.ObjectPath("/org/freedesktop/login1")
	manager   = service + ".Manager"
	prepare   = manager + ".PrepareForShutdown"
	tries     = 5
	firstWait = 100 * time.Millisecond
)

// ErrNone says that this machine has no logind.
var ErrNone = errors.New("there is no systemd-logind")

// bus is what Watch needs of the machine; it is another one in tests.
type bus interface {
	// Limit is how long a lock may hold things up.
	Limit() (time.Duration, error)
	// Raise asks for a higher limit, which takes a moment.
	Raise(to time.Duration) error
	// Lock holds things up until it is released.
	Lock() (release func(), err error)
	// Downs receives shutdowns: true when one begins, false when it was called off. It is closed with the connection.
	Downs() (<-chan bool, error)
	Close()
}

// Watch calls down at each shutdown until ctx ends or logind goes away, and holds the shutdown up until down has
// returned; down(false) says that it was called off. need is how long that may take, folder the data folder for which
// logind's limit is raised (see [Forget]). ErrNone: there is no logind.
func Watch(ctx context.Context, folder string, need time.Duration,
	down func(ctx context.Context, goes bool)) error {
	b, err := connect(folder)
	if err != nil {
		return err
	}
	return watch(ctx, b, need, down)
}

func watch(ctx context.Context, b bus, need time.Duration, down func(ctx context.Context, goes bool)) error {
	defer b.Close()
	if err := raise(ctx, b, need); err != nil {
		return err
	}
	release, err := b.Lock()
	if err != nil {
		return fmt.Errorf("inhibitor lock: %w", err)
	}
	defer func() { release() }()
	downs, err := b.Downs()
	if err != nil {
		return fmt.Errorf("signals of logind: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case goes, more := <-downs:
			if !more {
				return errors.New("the connection to logind has ended")
			}
			down(ctx, goes)
			release()
			release = func() {}
			if !goes { // hold up the next one
				if release, err = b.Lock(); err != nil {
					release = func() {}
					return fmt.Errorf("inhibitor lock: %w", err)
				}
			}
		}
	}
}

// raise sees to it that a lock holds for as long as is needed.
func raise(ctx context.Context, b bus, need time.Duration) error {
	has, err := b.Limit()
	if err != nil {
		return fmt.Errorf("logind's InhibitDelayMaxSec: %w", err)
	}
	if has >= need {
		return nil
	}
	if err := b.Raise(need); err != nil {
		return fmt.Errorf("raising logind's InhibitDelayMaxSec: %w", err)
	}
	for wait, n := firstWait, 0; n < tries; wait, n = 2*wait, n+1 {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		if has, err = b.Limit(); err == nil && has >= need {
			return nil
		}
	}
	return fmt.Errorf("logind holds a shutdown up for %s at most, pods may need %s: set InhibitDelayMaxSec in logind.conf",
		has, need)
}

// systemBus is the real one.
type systemBus struct {
	conn   *dbus.Conn
	login  dbus.BusObject
	folder string
}

func connect(folder string) (bus, error) {
	conn, err := dbus.ConnectSystemBus()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	var has bool
	if err := conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, service).Store(&has); err != nil || !has {
		conn.Close()
		return nil, errors.Join(ErrNone, err)
	}
	return &systemBus{conn, conn.Object(service, object), folder}, nil
}

// Limit implements bus.
func (b *systemBus) Limit() (time.Duration, error) {
	v, err := b.login.GetProperty(manager + ".InhibitDelayMaxUSec")
	if err != nil {
		return 0, err
	}
	usec, ok := v.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("it is a %T", v.Value())
	}
	return time.Duration(usec) * time.Microsecond, nil
}

// Raise implements bus: a file of ours beside logind's own, which it then reads.
func (b *systemBus) Raise(to time.Duration) error {
	if err := write(dropIn, b.folder, to); err != nil {
		return err
	}
	return b.conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").Call(
		"org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", int32(unix.SIGHUP)).Err
}

// Lock implements bus.
func (b *systemBus) Lock() (func(), error) {
	var fd dbus.UnixFD
	if err := b.login.Call(manager+".Inhibit", 0, "shutdown", "wherry", "pods end first",
		"delay").Store(&fd); err != nil {
		return nil, err
	}
	return func() { _ = unix.Close(int(fd)) }, nil
}

// Downs implements bus.
func (b *systemBus) Downs() (<-chan bool, error) {
	if err := b.conn.AddMatchSignal(dbus.WithMatchInterface(manager), dbus.WithMatchMember("PrepareForShutdown"),
		dbus.WithMatchObjectPath(object)); err != nil {
		return nil, err
	}
	signals, out := make(chan *dbus.Signal, 4), make(chan bool)
	b.conn.Signal(signals)
	go func() {
		defer close(out)
		for s := range signals { // closed with the connection
			if s.Name != prepare || len(s.Body) != 1 {
				continue
			}
			if goes, ok := s.Body[0].(bool); ok {
				select {
				case out <- goes:
				case <-b.conn.Context().Done():
				}
			}
		}
	}()
	return out, nil
}

// Close implements bus.
func (b *systemBus) Close() { b.conn.Close() }
