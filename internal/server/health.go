// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/node/record"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/store/inspect"
)

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	Fine    Severity = "ok"
	Warning Severity = "warning" // the server starts and serves, for now
	Fault   Severity = "error"   // the server does not start, or loses something
)

// Finding is one thing that a look at a data folder has found.
type Finding struct {
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject"` // what was looked at
	What     string   `json:"what"`
	Do       string   `json:"do,omitempty"` // what the user can do about it
}

// Check looks at a data folder, of a running server or of one that is not, and says what is wrong with it. Nothing is
// changed. snapshots is where the server is set to keep its snapshots; "": in the data folder. Its error is that
// there is nothing to look at.
func Check(ctx context.Context, dataDir, snapshots string, inspector []string, now time.Time) ([]Finding, error) {
	if err := checkRoot(os.Geteuid(), "only root may look at a server's data folder"); err != nil {
		return nil, err
	}
	written, err := readStamp(filepath.Join(dataDir, stampName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Refusal{Code: ExitFolder, What: fmt.Sprintf("%s is not the data folder of a wherry server",
			dataDir), Do: "check --data-dir"}
	}
	all := []Finding{judgeStamp(written, err)}
	running := Locked(dataDir)
	snapshots = SnapshotOptions{Dir: snapshots}.folder(dataDir)
	kept := backup.List(snapshots)
	all = append(all, checkStore(ctx, dataDir, inspector, running, kept), checkSnapshots(snapshots, kept, now))
	items, err := pki.Inventory(dataDir)
	all = append(all, judgeCertificates(items, err, now)...)
	all = append(all, judgeModes(modesOf(dataDir, snapshots))...)
	var room syscall.Statfs_t
	if err := syscall.Statfs(dataDir, &room); err != nil {
		return nil, err
	}
	return append(all, judgeRoom(room.Bavail*uint64(room.Bsize), room.Blocks*uint64(room.Bsize))), nil
}

// checkStore looks at the files of the embedded etcd. Those of a running server change while they are read: it watches
// them itself.
func checkStore(ctx context.Context, dataDir string, inspector []string, running bool, kept []backup.Kept) Finding {
	const subject = "store"
	dir := filepath.Join(dataDir, "etcd")
	_, unmarked := os.Stat(storeMark(dataDir))
	missing := func() Finding {
		pods, _ := record.List(filepath.Join(dataDir, "pods"))
		return judgeMissing(dir, len(pods), unmarked == nil, wayBack(dataDir, "", kept))
	}
	if _, err := os.Stat(filepath.Join(dir, "member")); err != nil {
		return missing()
	}
	if running {
		return Finding{Fine, subject, "in use by the running server; its files are looked at when it starts",
			"for a check of its contents: wherry backup, which verifies what it writes"}
	}
	facts, err := inspect.LookApart(ctx, inspector, dir)
	if err != nil {
		return Finding{Fault, subject, err.Error(), ""}
	}
	if inspect.Unborn(facts) && unmarked != nil { // a first start was killed; the next one makes it anew
		return missing()
	}
	if d := inspect.Judge(facts); d != nil {
		return Finding{Fault, subject, d.Error(), wayBack(dataDir, d.Usable, kept)}
	}
	return Finding{Fine, subject, fmt.Sprintf("whole: revision %d, %d MiB", facts.DB.Revision, facts.DB.Size>>20), ""}
}

// checkSnapshots reads the newest snapshot to its end.
func checkSnapshots(folder string, kept []backup.Kept, now time.Time) Finding {
	if len(kept) == 0 {
		return judgeSnapshot(folder, nil, nil, now)
	}
	f, err := os.Open(kept[0].Path)
	if err == nil {
		defer f.Close()
		_, err = backup.Verify(f)
	}
	return judgeSnapshot(folder, &kept[0], err, now)
}

// modesOf are the modes of what only root may read.
func modesOf(dataDir, snapshots string) map[string]fs.FileMode {
	var names []string
	for _, k := range backup.List(snapshots) { // a folder of the user's, and what else is in it, is his
		names = append(names, k.Path)
	}
	for _, name := range []string{"etcd", "pki", "audit", "snapshots", "pki/*.key", "pki/pods/*.key", "pki/admin.token",
		"pki/*current.pem", "config.json", "wherry.sock"} {
		files, _ := filepath.Glob(filepath.Join(dataDir, name)) // the patterns are well formed
		names = append(names, files...)
	}
	modes := map[string]fs.FileMode{}
	for _, f := range names {
		if info, err := os.Lstat(f); err == nil {
			modes[f] = info.Mode()
		}
	}
	return modes
}
