// SPDX-License-Identifier: Apache-2.0

package server

import "fmt"

// Refusal is a start that cannot be: what is in the way and what to do about it.
type Refusal struct {
	Code int    // exit code, one of the constants below
	What string // what is in the way
	Do   string // what the user can do
	Err  error  // cause, may be nil
}

// Exit codes of a server that does not start. 1 is any other failure, 2 a wrong command line.
const (
	ExitNotRoot      = 10
	ExitPortTaken    = 11
	ExitFolderLocked = 12
	ExitNewerVersion = 13
	ExitDiskFull     = 14
	ExitFolder       = 15
	ExitStore        = 16
	ExitAuthority    = 17
)

func (r *Refusal) Error() string {
	text := r.What
	if r.Err != nil {
		text += fmt.Sprintf(" (%v)", r.Err)
	}
	if r.Do != "" {
		text += ": " + r.Do
	}
	return text
}

func (r *Refusal) Unwrap() error { return r.Err }
