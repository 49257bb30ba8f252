// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"os"
	"reflect"
	"strconv"

	"mvdan.cc/sh/v3/interp"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// left is an exit in a trap on EXIT or ERR, which the interpreter takes no notice of: what follows it in the trap is
// left out, and it is the shell's end.
type left struct {
	is     bool
	status int
	after  int  // how many commands came after it in the trap
	onErr  bool // there is a trap on ERR
}

// endless is after how many commands that were left out a trap is one that does not end by itself: what it loops for
// may be what was left out.
const endless = 1000

// inTrap tells whether the shell is running a trap on EXIT or ERR, as the interpreter calls them itself.
func (s *session) inTrap() bool {
	field := reflect.ValueOf(s.runner).Elem().FieldByName("handlingTrap")
	return field.IsValid() && field.Bool()
}

// leaveTrap takes note of an exit in a trap. Without a status it has that with which the trap was entered, and which
// the shell ends with anyway.
func (s *session) leaveTrap(hc interp.HandlerContext, args []string) []string {
	status := -1
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return append([]string{"exit"}, args[1:]...) // which says what is wrong
		}
		status = n & 0xff
	}
	s.left.is, s.left.status, s.left.after = true, status, 0
	return s.leftOut(hc)
}

// leftOut is what becomes of a command that comes after such an exit: nothing, while the trap goes on, and the exit
// itself behind it.
func (s *session) leftOut(hc interp.HandlerContext) []string {
	status := s.left.status
	if status < 0 {
		status = int(hc.LastExitStatus)
	}
	if s.inTrap() {
		if s.left.after++; s.left.after > endless {
			if s.parting != nil {
				s.parting()
			}
			os.Exit(status)
		}
		return []string{inner + "status", strconv.Itoa(status)}
	}
	s.left.is = false // the trap on EXIT comes now, and may say exit once more
	return s.exit(status)
}

// exit ends the shell. That is no failure, and so the interpreter's trap on ERR is taken away before.
func (s *session) exit(status int) []string {
	if !s.left.onErr {
		return []string{"exit", strconv.Itoa(status)}
	}
	return []string{"eval", "trap - ERR; exit " + strconv.Itoa(status)}
}

// result is the shell's own, after its last trap.
func (s *session) result(err error) error {
	if s.left.is && s.left.status >= 0 {
		return applet.Exit(s.left.status)
	}
	return exit(err)
}
