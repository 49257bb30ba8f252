// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// Identity: certificates are renewed before they end, again and again, also after failures.
func TestRenewing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ca, err := LoadOrCreate(dir, "test-ca")
		if err != nil {
			t.Fatal(err)
		}
		const ttl = 100 * time.Hour
		var fail atomic.Bool
		made := 0
		r, err := NewRenewing("test", slog.New(slog.DiscardHandler), func() ([]byte, []byte, error) {
			if fail.Load() {
				return nil, nil, errors.New("no luck")
			}
			made++
			return ca.ServingFor([]string{"localhost"}, nil, ttl)
		})
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		r.OnRenewal(func() { told++ })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()

		first := r.Pair().Leaf
		time.Sleep(79 * time.Hour)
		synctest.Wait()
		if got, _ := r.ServerSide(nil); !got.Leaf.Equal(first) {
			t.Error("renewed before it was due")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		second, _ := r.ClientSide(nil)
		if second.Leaf.Equal(first) || made != 2 || told != 1 {
			t.Errorf("made %d, told %d", made, told)
		}
		if _, key := r.PEM(); len(key) == 0 {
			t.Error("no key")
		}

		fail.Store(true)
		time.Sleep(85 * time.Hour)
		synctest.Wait()
		if !r.Pair().Leaf.Equal(second.Leaf) {
			t.Error("a failure took the certificate away")
		}
		fail.Store(false)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if made != 3 {
			t.Errorf("made %d", made)
		}
		cancel()
		<-ended
	})
}

// Identity: a certificate is renewed when four fifths of its time are over.
func TestRenewAt(t *testing.T) {
	made := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := RenewAt(made, made.Add(10*time.Hour)); !got.Equal(made.Add(8 * time.Hour)) {
		t.Error(got)
	}
}
