// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bytes"
	"io"
	"testing"
	"time"
)

// No more than its bound is held in an inbox, and none of it when nobody reads any more.
func TestInbox(t *testing.T) {
	b := NewInbox()
	_, _ = b.Write(make([]byte, maxInbox))
	full := make(chan struct{})
	go func() { _, _ = b.Write([]byte("more")); close(full) }()
	select {
	case <-full:
		t.Error("there is no bound")
	case <-time.After(10 * time.Millisecond): // it waits; a slow machine makes this test weaker, never red
	}
	b.Stop()
	<-full
	if n, err := b.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}

// What is written out of an inbox at once is all that came, in its order, and no more is held than else.
func TestInboxWriteTo(t *testing.T) {
	b := NewInbox()
	r, w := io.Pipe()
	done := make(chan int64)
	go func() { n, _ := b.WriteTo(w); w.Close(); done <- n }()
	var want bytes.Buffer
	go func() {
		for i := range 300 {
			_, _ = b.Write(bytes.Repeat([]byte{byte(i)}, 10_000+i))
		}
		_ = b.Close()
	}()
	for i := range 300 {
		want.Write(bytes.Repeat([]byte{byte(i)}, 10_000+i))
	}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want.Bytes()) || <-done != int64(want.Len()) {
		t.Errorf("%d bytes of %d came, or others: %v", len(got), want.Len(), err)
	}

	b = NewInbox()
	r, w = io.Pipe()
	go func() { _, _ = b.WriteTo(w) }()
	if _, err := b.Write([]byte("x")); err != nil { // it is on its way when this is read
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	b.Stop()
	_, _ = b.Write(make([]byte, 2*maxInbox)) // dropped, and not waited with
	r.Close()
}
