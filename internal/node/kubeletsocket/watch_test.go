// SPDX-License-Identifier: Apache-2.0

package kubeletsocket

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

// WL-17: sockets that are there and that come are served until they go; a file and a hidden socket are not.
func TestWatch(t *testing.T) {
	folder := t.TempDir()
	open := func(name string) {
		l, err := socket.Listen(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	open("early.sock")
	open(".hidden.sock")
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(ctx, folder, func(ctx context.Context, at string) {
			said <- "came " + filepath.Base(at)
			<-ctx.Done()
			said <- "went " + filepath.Base(at)
		})
	}()
	want := func(text string) {
		t.Helper()
		if got := <-said; got != text {
			t.Errorf("%s, want %s", got, text)
		}
	}
	want("came early.sock")
	open("late.sock")
	want("came late.sock")
	if err := os.Remove(filepath.Join(folder, "early.sock")); err != nil {
		t.Fatal(err)
	}
	want("went early.sock")
	open("early.sock")
	want("came early.sock")
	cancel()
	<-said
	<-said
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
