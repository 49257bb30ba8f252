// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestPersist: what fails is tried again until it succeeds or nobody wants it any more.
func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := slog.New(slog.DiscardHandler)
		tries, began := 0, time.Now()
		if !Persist(ctx, log, "", func(context.Context) error {
			if tries++; tries < 4 {
				return errors.New("a conflict")
			}
			return nil
		}) || tries != 4 || time.Since(began) != 7*firstPause {
			t.Errorf("%d tries in %v", tries, time.Since(began))
		}
		time.AfterFunc(time.Hour, cancel)
		began = time.Now()
		if Persist(ctx, log, "", func(context.Context) error { return errors.New("for ever") }) || time.Since(began) != time.Hour {
			t.Errorf("it goes on, %v", time.Since(began))
		}
	})
}
