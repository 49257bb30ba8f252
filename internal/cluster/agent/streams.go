// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"io"
	"os"
	"sync"

	"github.com/wherryproject/wherry/internal/streams"
)

// joined are the streams of a client and a child that are connected.
type joined struct {
	heard map[byte]io.WriteCloser // of what the client says
	input *streams.Inbox          // nil: there is none
	out   sync.WaitGroup          // of what the child says
	child *Child
}

// connect copies between a client and a child, both ways.
func connect(socket *streams.Socket, child *Child) *joined {
	j := &joined{heard: map[byte]io.WriteCloser{}, child: child}
	if child.In != nil {
		j.input = streams.NewInbox()
		j.heard[streams.Stdin] = j.input
		go j.feed()
	}
	if child.Terminal != nil {
		from, to := io.Pipe()
		j.heard[streams.Resize] = to
		go resize(from, child.Terminal)
	}
	first := streams.Status
	if child.Err != nil {
		first = streams.Stderr
	}
	if child.Out != nil {
		first = streams.Stdout
	}
	_, _ = socket.Channel(first).Write(nil) // tells the client that it is connected
	j.copy(socket.Channel(streams.Stdout), child.Out)
	j.copy(socket.Channel(streams.Stderr), child.Err)
	return j
}

// feed hands on what the client says, and its end. The end of what is typed into a terminal is none of the terminal.
func (j *joined) feed() {
	_, _ = io.Copy(j.child.In, j.input) // a command that reads no more is no error
	if j.child.Terminal == nil {
		_ = j.child.In.Close()
		return
	}
}

// copy hands on what the child says. When nobody takes it any more, the child's commands learn that as from any pipe.
// A terminal has no such word: it is read on until it is closed, for who writes to a full one does not end.
func (j *joined) copy(to io.Writer, from *os.File) {
	if from == nil {
		return
	}
	j.out.Go(func() {
		switch _, err := io.Copy(to, from); {
		case err == nil:
		case j.child.Terminal == nil:
			_ = from.Close()
		default: // also when its other side is closed
			go func() { _, _ = io.Copy(io.Discard, from) }()
		}
	})
}

// quit is for a client that is gone: nothing is fed any more.
func (j *joined) quit() {
	if j.input != nil {
		j.input.Stop()
	}
}

// finish waits until all output of the child was passed on, after its end.
func (j *joined) finish() {
	j.quit()
	j.out.Wait()
}

// size is one of a client's window.
type size struct{ Width, Height uint16 }

// resize hands on the sizes of the client's window until there are no more.
func resize(from *io.PipeReader, terminal *os.File) {
	for d := json.NewDecoder(from); ; {
		var s size
		if d.Decode(&s) != nil {
			_, _ = io.Copy(io.Discard, from) // what is no size holds up nothing else
			return
		}
		if s.Width > 0 && s.Height > 0 {
			_ = setSize(terminal, s) // the session may have ended
		}
	}
}
