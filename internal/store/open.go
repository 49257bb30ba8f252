// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/wherryproject/wherry/internal/store/inspect"
)

// DamageError says that the files of a store are damaged, and which. Nothing was changed.
type DamageError struct {
	Dir string // etcd's own folder
	*inspect.Damage
}

func (e *DamageError) Error() string { return "the store is damaged: " + e.Damage.Error() }

func (e *DamageError) Unwrap() error { return e.Damage }

// sound refuses a store that is damaged. Etcd itself would panic, wait for ever, or go on without what it has acknowledged.
func sound(ctx context.Context, cfg Config) error {
	facts, err := inspect.LookApart(ctx, cfg.Inspector, cfg.Dir)
	if err != nil {
		return explain(cfg.Dir, err)
	}
	if d := inspect.Judge(facts); d != nil {
		return &DamageError{cfg.Dir, d}
	}
	return nil
}

// open starts etcd and returns when it answers, when it gives up, or when ctx ends, whatever etcd is doing.
func (e *Etcd) open(ctx context.Context, dir string, c *embed.Config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("store %s: etcd was not ready within %v; if the disk is only slow, start the server again", dir, startTimeout))
	defer cancel()
	type result struct {
		server *embed.Etcd
		err    error
	}
	begun := make(chan result, 1)
	go func() {
		server, err := embed.StartEtcd(c)
		begun <- result{server, err}
	}()
	select {
	case r := <-begun:
		if r.err != nil {
			return unopened(dir, r.err)
		}
		e.server = r.server
	case <-e.verdict.dead:
		return unopened(dir, e.verdict.err)
	case <-ctx.Done(): // StartEtcd knows no context: it is left to the end of the process
		return context.Cause(ctx)
	}
	select {
	case <-e.server.Server.ReadyNotify():
		e.ready = true
		return nil
	case <-e.verdict.dead:
		return unopened(dir, e.verdict.err)
	case err := <-e.server.Err():
		return explain(dir, err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// unopened words why etcd could not open its files. What is not the machine's doing is the files'.
func unopened(dir string, err error) error {
	var machine syscall.Errno
	if errors.As(err, &machine) {
		return explain(dir, err)
	}
	return &DamageError{dir, &inspect.Damage{File: dir, What: "cannot be opened: " + err.Error()}}
}

// endPatience is how long an etcd may take to end that was never ready. One whose log is damaged waits for itself.
const endPatience = 3 * time.Second

// end stops etcd and returns what its listeners said last.
func (e *Etcd) end() error {
	ended := make(chan struct{})
	go func() {
		e.server.Close()
		close(ended)
	}()
	if e.ready {
		<-ended
	} else {
		select {
		case <-ended:
		case <-time.After(endPatience):
			return errors.New("etcd did not end its start in time")
		}
	}
	var errs []error
	for {
		select {
		case err, more := <-e.server.Err():
			if more {
				errs = append(errs, err)
				continue
			}
		default:
		}
		return errors.Join(errs...)
	}
}
