// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/store"
)

// damaged refuses to start with a damaged store, and says what can be had back and how.
func damaged(dataDir string, err *store.DamageError) *Refusal {
	return &Refusal{Code: ExitStore, What: err.Error(), Do: wayBack(dataDir, err.Usable)}
}

// wayBack is what to do about a store that cannot be opened. usable is a database file that is whole; empty: there is none.
func wayBack(dataDir, usable string) string {
	text := "nothing was changed, and pods keep running"
	if usable != "" {
		return text + ". The objects are all in its database; to go on with them: " + restoreCommand(dataDir, usable)
	}
	return text + fmt.Sprintf(". To go on, restore a backup: %s", restoreCommand(dataDir, "FILE")) +
		fmt.Sprintf("; without one, move %s away and start with an empty store", filepath.Join(dataDir, "etcd"))
}

// restoreCommand is the command line that puts a backup in a store's place.
func restoreCommand(dataDir, file string) string {
	where := ""
	if dataDir != DefaultDataDir {
		where = " --data-dir " + dataDir
	}
	return "sudo wherry restore" + where + " --force " + file
}
