// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"log/slog"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Minute
)

// Persist does something until it succeeds, ever less often; false: ctx was done before. What is for the log.
func Persist(ctx context.Context, log *slog.Logger, what string, do func(context.Context) error) bool {
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		err := do(ctx)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		}
		log.Warn("failed, will try again", "what", what, "err", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}
