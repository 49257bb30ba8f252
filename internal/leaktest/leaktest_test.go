// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// A goroutine that ends late is waited for; one that does not end is found.
func TestFind(t *testing.T) {
	others := []goleak.Option{goleak.IgnoreCurrent()}
	late := time.AfterFunc(0, func() { time.Sleep(time.Second) }) // longer than goleak itself waits
	defer late.Stop()
	if err := find(Patience, others); err != nil {
		t.Error(err)
	}
	end := make(chan struct{})
	go func() { <-end }()
	if err := find(0, others); err == nil {
		t.Error("a goroutine that waits for ever is not found")
	}
	close(end)
	None(t, others...)
}
