// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// within fails a test in which something is not over in good time.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: for ever", what)
	}
}

// A process that ends before it has read what it is to do, which is more than a pipe holds, is an error.
func TestStartOfTheDead(t *testing.T) {
	ask := talk.Ask{Session: &wire.Session{Command: []string{"sh", "-c", strings.Repeat("x", 512<<10)}}}
	within(t, "the start", func() {
		if c, err := (Place{Here: true}).Start("/bin/true", ask, Streams{}); err == nil {
			t.Error("it was told what to do")
			c.End()
		}
	})
}

// DA-09: a process that does not hear that its client is gone is killed, whether or not somebody waits for its end.
func TestDeaf(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ask := talk.Ask{Session: &wire.Session{Pod: wire.Pod{UID: "u"}, Command: []string{"deaf"}}}
	c, err := Place{Here: true}.Start(program, ask, Streams{})
	if err != nil {
		t.Fatal(err)
	}
	c.patience = time.Millisecond
	if r := c.Next(); r == nil || r.Ready == nil {
		t.Errorf("%+v", r)
	}
	within(t, "the reports", func() {
		c.LetGo()
		if r := c.Next(); r != nil {
			t.Errorf("%+v", r)
		}
		c.End()
	})
}
