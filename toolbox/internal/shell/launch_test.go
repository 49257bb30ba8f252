// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// DC-01: a script that is asked to stop once more before it has stopped stops once. It was continued by a shell that left, and hung up, only to
// stop again, with nobody there who would continue it.
func TestStopsOnce(t *testing.T) {
	s := &session{jobs: newJobs(), traps: newTraps(func() {}), asked: make(chan os.Signal, 1)}
	s.jobs.mu.Lock() // as a program that is being started does
	stops := 0
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.stopWhenAsked(func() { stops++ })
	}()
	s.asked <- unix.SIGTSTP
	s.asked <- unix.SIGTSTP // there is room for it once the first was taken
	s.jobs.mu.Unlock()
	close(s.asked)
	<-over
	if stops != 1 {
		t.Errorf("it stopped %d times", stops)
	}
}
