// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// What is waited for is told only when the server takes its time, and not beyond its answer.
func TestMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		told  bool
	}{"at once": {0, false}, "soon": {patience - 1, false}, "late": {3 * patience, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told, over := time.Duration(0), false
				begin := time.Now()
				r := Request{
					Dial: func(context.Context, *url.URL) (*websocket.Conn, error) {
						time.Sleep(c.takes)
						return nil, errors.New("no")
					},
					Meanwhile: func(ctx context.Context) {
						told = time.Since(begin)
						<-ctx.Done()
						over = true
					},
				}
				if _, err := r.Run(t.Context()); err == nil {
					t.Error("no error")
				}
				if took := time.Since(begin); took != c.takes {
					t.Errorf("the answer was there after %s, and Run returned after %s", c.takes, took)
				}
				if c.told != over || c.told && told != patience {
					t.Errorf("told after %s; ended %v", told, over)
				}
			})
		})
	}
}
