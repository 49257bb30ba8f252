// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"time"
)

// owedAgain is how often a file is tried again that found no room: nothing notifies of free space on a disk.
const owedAgain = time.Second

// owed is a file that is written as soon as there is room for it: a server that starts on a full disk serves those who
// can free it (RS-02). Whatever is written last is the newest.
type owed struct {
	write func([]byte) error
	log   *slog.Logger

	mu    sync.Mutex    // also while it is written: what is tried again never comes after something newer
	text  []byte        // nil: nothing is owed
	since chan struct{} // capacity 1: something is
}

func newOwed(log *slog.Logger, write func([]byte) error) *owed {
	return &owed{write: write, log: log, since: make(chan struct{}, 1)}
}

// put writes it. That there is no room is no error: then it is owed.
func (o *owed) put(text []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.write(text)
	if !outOfSpace(err) {
		o.text = nil
		return err
	}
	o.log.Warn("no space left on the disk for the kubeconfig; it will be written as soon as there is some", "err", err)
	o.text = text
	select {
	case o.since <- struct{}{}:
	default:
	}
	return nil
}

// again tries to write what is owed, and reports whether nothing is owed any more.
func (o *owed) again() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text == nil {
		return true
	}
	err := o.write(o.text)
	if outOfSpace(err) {
		return false
	}
	o.text = nil
	if err != nil {
		o.log.Error("the kubeconfig cannot be written", "err", err)
	} else {
		o.log.Info("there is room again: the kubeconfig is written")
	}
	return true
}

// run pays what is owed until ctx is done.
func (o *owed) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.since:
		}
		look := time.NewTicker(owedAgain)
		for paid := false; !paid; {
			select {
			case <-ctx.Done():
				look.Stop()
				return
			case <-look.C:
				paid = o.again()
			}
		}
		look.Stop()
	}
}

func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
