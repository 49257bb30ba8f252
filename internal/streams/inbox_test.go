// SPDX-License-Identifier: Apache-2.0

package streams

import (
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
