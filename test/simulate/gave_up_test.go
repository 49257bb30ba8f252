// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/wherryproject/wherry/internal/store"
	"github.com/wherryproject/wherry/test/simulate/disk"
)

// RS-02: an etcd that gave up, for want of room for its log, can be stopped, whatever it was asked for meanwhile; nothing of it is said after why
// it gave up.
func TestEtcdThatGaveUpEnds(t *testing.T) {
	d, err := disk.Start(os.Stderr)
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := d.Mount(dir); err != nil {
		t.Fatal(err)
	}
	wal.SegmentSizeBytes = segmentBytes
	o := store.InsideOptions{NoSync: true}
	i, err := store.StartInside(t.Context(), store.Config{Dir: dir}, o)
	if err != nil {
		t.Fatal(err)
	}
	i.Stop()
	// No room for the next file of the log, which is laid out ahead of time, when etcd starts; room for everything afterwards.
	if err := d.Fail(disk.Faults{Full: true}, 1); err != nil {
		t.Fatal(err)
	}
	noRoom := &heard{text: "failed to preallocate", then: make(chan struct{})}
	var gaveUp atomic.Bool
	i, err = store.StartInside(t.Context(), store.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(noRoom, nil)), Failed: func(err error) {
		goesOn()
		gaveUp.Store(true)
	}}, o)
	if err != nil {
		t.Fatal(err)
	}
	<-noRoom.then
	if err := d.Fail(disk.Faults{}, 1); err != nil {
		t.Fatal(err)
	}
	c := v3client.New(i.Server)
	value := string(bytes.Repeat([]byte("v"), 100<<10))
	for n, after := 0, 0; after < 10; n++ {
		if gaveUp.Load() {
			after++
		} else if n == 100 {
			t.Fatal("it does not give up: the test proves nothing")
		}
		_, _ = c.Put(t.Context(), "/registry/a", value)
	}
	i.Stop()
	_ = c.Close() // of what has ended
}

// heard closes a channel when a text is written.
type heard struct {
	text string
	then chan struct{}
	once sync.Once
}

func (h *heard) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(h.text)) {
		h.once.Do(func() { close(h.then) })
	}
	return len(p), nil
}
