// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/store"
)

// RS-07: whatever ends the store ends the server with an exit code of its own, and with words that say what is lost and what to do.
func TestStoreRefusal(t *testing.T) {
	for err, want := range map[error]struct {
		code int
		do   string
	}{
		store.ErrLocked:     {ExitFolderLocked, "in use"},
		store.ErrDiskFull:   {ExitDiskFull, "free some space"},
		store.ErrDiskFailed: {ExitStore, "nothing that was acknowledged is lost; see what the kernel says of the disk (dmesg)"},
	} {
		got, ok := errors.AsType[*Refusal](storeRefusal(fmt.Errorf("store /x: %w", err)))
		if !ok || got.Code != want.code || !strings.Contains(got.Error(), want.do) || !strings.Contains(got.Error(), "/x") {
			t.Errorf("%v ends the server with %v", err, got)
		}
	}
}
