// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Kept is a backup that a server has made by itself.
type Kept struct {
	Path    string    `json:"path"`
	Created time.Time `json:"created"`
	Bytes   int64     `json:"bytes"`
}

const (
	keptPrefix = "store-"
	keptSuffix = ".tar.gz"
	keptTime   = "20060102T150405Z"
)

// Folder is where a server keeps them.
func Folder(dataDir string) string { return filepath.Join(dataDir, "snapshots") }

// KeptName is the file name of one made at a time.
func KeptName(at time.Time) string { return keptPrefix + at.UTC().Format(keptTime) + keptSuffix }

// List returns the backups in a folder, newest first. Other files are left out; a folder that cannot be read has none.
func List(folder string) []Kept {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var all []Kept
	for _, e := range entries {
		stamp, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), keptSuffix), keptPrefix)
		at, terr := time.Parse(keptTime, stamp)
		info, err := e.Info()
		if ok && terr == nil && err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), keptSuffix) {
			all = append(all, Kept{Path: filepath.Join(folder, e.Name()), Created: at, Bytes: info.Size()})
		}
	}
	slices.SortFunc(all, func(a, b Kept) int { return b.Created.Compare(a.Created) })
	return all
}

// Surplus are those beyond the newest ones, of a list that List returned. (Pure.)
func Surplus(all []Kept, keep int) []Kept { return all[min(keep, len(all)):] }

// Due is when the next one is to be made: an interval after the newest, or now. (Pure.)
func Due(all []Kept, interval time.Duration, now time.Time) time.Time {
	if len(all) == 0 || all[0].Created.After(now) { // made by a clock that was wrong
		return now
	}
	if at := all[0].Created.Add(interval); at.After(now) {
		return at
	}
	return now
}
