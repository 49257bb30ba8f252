// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"strings"
	"syscall"

	"github.com/wherryproject/wherry/internal/store"
)

// AgainError says that the server has to be started again, in a new process, as its store could not go on: etcd leaves
// its files locked when it gives up. Pods go on running meanwhile.
type AgainError struct {
	Err  error
	Vain bool // it was started again already, and had no room to get ready
}

func (e *AgainError) Error() string { return e.Err.Error() }

func (e *AgainError) Unwrap() error { return e.Err }

// startedInVain makes an error with which a start ended one after which to start again: where the server was started in
// place of one whose disk was full, and the disk is still too full for the start. Whoever started the server by hand is
// told instead. (Pure.)
func startedInVain(err error, again bool) error {
	if again && err != nil && diskFull(err) {
		return &AgainError{Err: err, Vain: true}
	}
	return err
}

// diskFull reports whether an error comes from a disk without room, also one that has come through a connection.
func diskFull(err error) bool {
	if r, ok := errors.AsType[*Refusal](err); ok && r.Code == ExitDiskFull {
		return true
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, store.ErrDiskFull) ||
		strings.Contains(err.Error(), syscall.ENOSPC.Error())
}
