// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// endNotice is the socket on which the session's first process reports that the command and everything it left behind
// are gone. It then waits until the other end is closed, so that the session's cgroup, which disappears with it, can be
// read before.
type endNotice struct {
	ours, theirs *os.File
	look         func() int // counts the processes that the kernel has killed for want of memory
	killed       chan int   // their number, when the session has ended
}

func (s *session) endNotice() (*endNotice, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &endNotice{os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs"),
		func() int { return s.machine.MemoryKills(s.id) }, make(chan int, 1)}, nil
}

// listen waits for the notice, once runc has inherited the other end.
func (n *endNotice) listen() {
	_ = n.theirs.Close()
	go func() {
		kills := 0
		if size, _ := n.ours.Read(make([]byte, 1)); size > 0 { // otherwise it was killed
			kills = n.look()
		}
		n.killed <- kills
		_ = n.ours.Close()
	}()
}

// kills waits for the end of the session and returns how many of its processes were killed for want of memory.
func (n *endNotice) kills() int { return <-n.killed }

// close closes both ends. It may be called whether listen was or not.
func (n *endNotice) close() {
	_ = n.theirs.Close()
	_ = n.ours.Close()
}

// outOfMemory returns the reason why the session ended if a lack of memory ended it. If that killed some of its
// processes only, the user gets a note.
func (s *session) outOfMemory(code, kills int) error {
	if kills == 0 {
		return nil
	}
	why := "the machine has run out of memory"
	if limit := s.req.Options.Memory; limit > 0 {
		why = fmt.Sprintf("it has reached its memory limit of %s (--memory)", size(limit))
	}
	if code == killed {
		return &Ended{why}
	}
	what := "one of its programs was"
	if kills > 1 {
		what = fmt.Sprintf("%d of its programs were", kills)
	}
	s.note(fmt.Sprintf("%s killed: %s", what, why))
	return nil
}

// size formats a number of bytes as users write it, for example 512Mi. (Pure.)
func size(bytes int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti"}
	i := 0
	for ; i < len(units)-1 && bytes%1024 == 0; i++ {
		bytes /= 1024
	}
	return fmt.Sprint(bytes, units[i])
}
