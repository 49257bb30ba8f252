// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
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

// A process that says more than is heard is not left waiting until somebody hears it.
func TestTooLong(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Place{Here: true}.Start(program, talk.Ask{Evidence: &wire.Pod{Name: "long", UID: "u"}}, Streams{})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Next(); r != nil {
		t.Errorf("%.100s", r.Evidence)
	}
	within(t, "its end", c.End)
}

// An answer is whole before what is done after it.
func TestAnswer(t *testing.T) {
	read := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "<done>")
		<-read
	}))
	defer s.Close()
	defer close(read)
	within(t, "the answer", func() {
		r, err := http.Get(s.URL)
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Body.Close()
		var what string
		if text, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(text, &what) != nil || what != "<done>" {
			t.Errorf("%q, %v", text, err)
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
