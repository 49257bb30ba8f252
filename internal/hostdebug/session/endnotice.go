// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// farewell is the socket at which the session's first process says that the command and all that it has left are gone,
// and waits until it may end too: the session's cgroup, which goes with it, is looked at meanwhile.
type farewell struct {
	ours, theirs *os.File
	look         func() int // how many processes the kernel has killed for want of memory
	heard        chan int
}

func (s *one) farewell() (*farewell, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &farewell{os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs"),
		func() int { return s.machine.MemoryKills(s.id) }, make(chan int, 1)}, nil
}

// hear waits for it, once the other end is the session's own.
func (f *farewell) hear() {
	_ = f.theirs.Close()
	go func() {
		kills := 0
		if n, _ := f.ours.Read(make([]byte, 1)); n > 0 { // else it was killed
			kills = f.look()
		}
		f.heard <- kills
		_ = f.ours.Close()
	}()
}

// kills is what was seen, when the session has ended.
func (f *farewell) kills() int { return <-f.heard }

// close is for one at which nobody was heard, too.
func (f *farewell) close() {
	_ = f.theirs.Close()
	_ = f.ours.Close()
}

// outOfMemory is why a session has ended some of whose processes were killed for want of memory, if that ended it; else
// the user gets a note.
func (s *one) outOfMemory(code, kills int) error {
	if kills == 0 {
		return nil
	}
	why := "the machine has run out of memory"
	if limit := s.req.Wish.Memory; limit > 0 {
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

// size is a number of bytes as one gives it. (Pure.)
func size(bytes int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti"}
	i := 0
	for ; i < len(units)-1 && bytes%1024 == 0; i++ {
		bytes /= 1024
	}
	return fmt.Sprint(bytes, units[i])
}
