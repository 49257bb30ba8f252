// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bytes"
	"io"
	"sync"
)

// maxInbox bounds what is held of a client's input.
const maxInbox = 1 << 20

// Inbox is a pipe that holds up to 1 MiB which its reader has not read yet. All channels come over one connection, and
// while one of them is not read, a change of the window's size is not heard, nor that the client is gone; so for a
// while it is read on behalf of the process.
type Inbox struct {
	mu      sync.Mutex
	changed sync.Cond
	held    bytes.Buffer
	room    int  // how much is held at most
	ended   bool // nothing more comes
	stopped bool // nobody reads any more
}

// NewInbox makes an empty inbox.
func NewInbox() *Inbox {
	b := &Inbox{room: maxInbox}
	b.changed.L = &b.mu
	return b
}

// Write implements io.Writer. It waits while too much is held. What comes after the end, or when nobody reads any more,
// is dropped: a socket that is closed with something unread in it may take the last output with it.
func (b *Inbox) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.stopped && !b.ended && b.held.Len() >= b.room {
		b.changed.Wait()
	}
	if !b.stopped && !b.ended {
		b.held.Write(p)
	}
	b.changed.Broadcast()
	return len(p), nil
}

// Read implements io.Reader.
func (b *Inbox) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.held.Len() == 0 && !b.ended && !b.stopped {
		b.changed.Wait()
	}
	defer b.changed.Broadcast()
	return b.held.Read(p) // io.EOF when there is nothing
}

// WriteTo implements io.WriterTo: what is held is written as it is, at once, while more comes. There are two halves
// then, one that is filled and one that is written.
func (b *Inbox) WriteTo(w io.Writer) (written int64, err error) {
	b.mu.Lock()
	b.room = maxInbox / 2
	b.mu.Unlock()
	var spare []byte
	for {
		text := b.take(spare)
		if len(text) == 0 {
			return written, nil
		}
		n, err := w.Write(text)
		written += int64(n)
		if err != nil {
			return written, err
		}
		spare = text[:0]
	}
}

// take waits for something and takes all of it, leaving memory in its place; nothing at the end.
func (b *Inbox) take(spare []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.held.Len() == 0 && !b.ended && !b.stopped {
		b.changed.Wait()
	}
	text := b.held.Bytes()
	b.held = *bytes.NewBuffer(spare)
	b.changed.Broadcast()
	return text
}

// Close implements io.Closer, for the writer: nothing more comes.
func (b *Inbox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.changed.Broadcast()
	return nil
}

// Stop is for the reader: it reads no more.
func (b *Inbox) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped, b.held = true, bytes.Buffer{}
	b.changed.Broadcast()
}
