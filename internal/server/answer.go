// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/node/record"
)

// answer is what is to become of pods that a store does not know.
type answer struct {
	adopt  []record.Record // are written back
	forget []record.Record // are ended
	open   []record.Record // nobody has decided
	stuck  []record.Record // of open: those that cannot be written back
}

// decide sorts them by what was asked for. A pod cannot be written back of which the node has no record, or whose name
// another pod has by now. (Pure.)
func decide(unknown []record.Record, names map[string]bool, adopt, forget bool) (a answer) {
	for _, r := range unknown {
		can := r.Pod != nil && !names[r.Name()]
		switch {
		case adopt && can:
			a.adopt = append(a.adopt, r)
		case forget:
			a.forget = append(a.forget, r)
		default:
			a.open = append(a.open, r)
			if !can {
				a.stuck = append(a.stuck, r)
			}
		}
	}
	return a
}

// words says what is in the way of a start.
func (a answer) words(why string) string {
	switch n := len(a.open); n {
	case 0:
		return why
	case 1:
		return fmt.Sprintf("%s: a pod of this node is not in it: %s", why, namesOf(a.open))
	default:
		return fmt.Sprintf("%s: %d pods of this node are not in it: %s", why, n, namesOf(a.open))
	}
}

// ways says how to go on. The store came from the snapshot of the file name from, which is not offered again; "" is
// none.
func (a answer) ways(dataDir string, kept []backup.Kept, from string) string {
	command := serverCommand(dataDir)
	lines := []string{"nothing was changed, and pods keep running"}
	if len(a.open) > len(a.stuck) {
		lines = append(lines, "to write them back into the store, from this node's records: "+command+" --adopt")
	}
	if len(a.stuck) > 0 {
		lines = append(lines, "cannot be written back, because their record is missing or another pod has their name: "+
			namesOf(a.stuck))
	}
	if len(a.open) > 0 {
		lines = append(lines, "to end them (with --adopt: those that cannot be written back): "+command+" --forget")
	} else {
		lines = append(lines, "to begin with an empty store: "+command+" --forget")
	}
	which := "newest"
	if i := slices.IndexFunc(kept, func(k backup.Kept) bool { return filepath.Base(k.Path) == from }); i >= 0 {
		lines = append(lines, "this store was restored from the snapshot of "+kept[i].Created.Format(time.RFC3339))
		kept, which = slices.Delete(slices.Clone(kept), i, i+1), "newest other"
	}
	if len(kept) > 0 {
		lines = append(lines, fmt.Sprintf("to go back to the %s snapshot, of %s: %s", which,
			kept[0].Created.Format(time.RFC3339), restoreCommand(dataDir, kept[0].Path)))
	} else {
		lines = append(lines, "to restore a backup: "+restoreCommand(dataDir, "FILE"))
	}
	return strings.Join(lines, "\n")
}

// namesOf names a few pods.
func namesOf(list []record.Record) string {
	const most = 8
	var names []string
	for _, r := range list[:min(most, len(list))] {
		names = append(names, r.Name())
	}
	if n := len(list) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}
