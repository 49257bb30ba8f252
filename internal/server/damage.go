// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/store"
)

// damaged refuses to start with a damaged store, and says what can be had back and how.
func damaged(dataDir, snapshots string, err *store.DamageError) *Refusal {
	return &Refusal{Code: ExitStore, What: err.Error(), Do: wayBack(dataDir, err.Usable, backup.List(snapshots))}
}

// wayBack is what to do about a store that cannot be opened. usable is a database file that is whole; empty: there is
// none. kept are the snapshots that were made by themselves, newest first. (Pure.)
func wayBack(dataDir, usable string, kept []backup.Kept) string {
	var ways []string
	if usable != "" {
		ways = append(ways, "to go on with the objects in its database, which is whole: "+
			restoreCommand(dataDir, usable))
	}
	if len(kept) > 0 {
		ways = append(ways, fmt.Sprintf("to go back to the newest snapshot, of %s: %s",
			kept[0].Created.Format(time.RFC3339), restoreCommand(dataDir, kept[0].Path)))
	}
	if len(ways) == 0 {
		ways = append(ways, "there is no snapshot of it: to restore a backup: "+restoreCommand(dataDir, "FILE"),
			fmt.Sprintf("without one, move %s away and start with an empty store", filepath.Join(dataDir, "etcd")))
	}
	return "nothing was changed, and pods keep running\n" + strings.Join(ways, "\n")
}

// restoreCommand is the command line that puts a backup in a store's place.
func restoreCommand(dataDir, file string) string {
	return "sudo wherry restore" + dataDirArg(dataDir) + " --force " + file
}

// serverCommand is the command line that starts a server on a data folder.
func serverCommand(dataDir string) string { return datadir.Start(dataDir) }

func dataDirArg(dataDir string) string {
	if dataDir == DefaultDataDir {
		return ""
	}
	return " --data-dir " + dataDir
}
