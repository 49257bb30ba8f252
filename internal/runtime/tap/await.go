// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"context"
	"sync"
	"time"
)

// lent is room for what a client is given, which it has only while there is something: there may be hundreds that wait.
type lent struct {
	spare *sync.Pool
	have  *logBuffers
}

func (l *lent) room() []byte {
	if l.have == nil {
		l.have = takeBuffers(l.spare)
	}
	return l.have.raw[:attachSize]
}

// rest gives the room back, until there is output again.
func (l *lent) rest() {
	if l.have != nil {
		l.spare.Put(l.have)
		l.have = nil
	}
}

// await copies the next output of one stream, waiting for it; nothing at the end of all. The text is there until the
// next call.
func (t *tap) await(ctx context.Context, c *cursor, of *client,
	in *lent) (text []byte, s stream, lost uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(text) == 0 && err == nil {
		if !t.ring.more(c) {
			in.rest()
		}
		if err = t.awaitMore(ctx, c, of); err != nil {
			break
		}
		if !t.ring.more(c) {
			return nil, 0, 0, nil
		}
		t.ring.catchUp(c)
		text, s = t.unseen(c, of, in.room())
		lost, c.lost = lost+c.lost, 0
	}
	of.took, of.free = time.Now(), false
	t.changed.Broadcast() // somebody may wait for room
	return text, s, lost, err
}

// unseen copies output that a client does not have from the log.
func (t *tap) unseen(c *cursor, of *client, buf []byte) ([]byte, stream) {
	join := c.position() >= max(of.from[stdout], of.from[stderr])
	n, s, at := t.ring.next(c, buf, join)
	if !join && at < of.from[s] {
		return buf[min(of.from[s]-at, uint64(n)):n], s
	}
	return buf[:n], s
}

// awaitMore waits for output behind a cursor, or until there will be none for this client.
func (t *tap) awaitMore(ctx context.Context, c *cursor, of *client) error {
	for ; ctx.Err() == nil && !t.ring.more(c); t.changed.Wait() {
		switch {
		case t.stopped:
			return ErrStopped
		case t.pumps == 0, of.left:
			return nil
		}
	}
	return ctx.Err()
}
