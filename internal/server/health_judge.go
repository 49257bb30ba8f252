// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/pki"
)

const (
	// endsSoon is when a certificate's end is reported: a month suffices to plan a rotation.
	endsSoon = 30 * 24 * time.Hour
	// staleSnapshot is the age at which the newest snapshot is no longer a daily one.
	staleSnapshot = 3 * 24 * time.Hour
)

// judgeStamp judges the version file. (Pure.)
func judgeStamp(s stamp, err error) Finding {
	const subject = "data folder"
	switch {
	case err != nil:
		return Finding{Fault, subject, fmt.Sprintf("its version file cannot be read (%v)", err),
			"restore it or, if this wherry wrote the folder, remove it"}
	case s.Format > format:
		return Finding{Fault, subject, fmt.Sprintf("written by wherry %s (format %d), newer than this one (format %d)",
			s.Wherry, s.Format, format), "use that version or newer"}
	}
	return Finding{Fine, subject, fmt.Sprintf("format %d, last written by wherry %s", s.Format, s.Wherry), ""}
}

// judgeMissing judges a folder without an embedded store. (Pure.)
func judgeMissing(dir string, pods int, marked bool, ways string) Finding {
	const subject = "store"
	switch {
	case pods > 0:
		return Finding{Fault, subject, fmt.Sprintf("%s is gone, and this node has %d pods", dir, pods), ways}
	case marked:
		return Finding{Fault, subject, dir + " is gone", ways}
	}
	return Finding{Fine, subject, "none of its own: an agent, an external etcd, or never started", ""}
}

// judgeSnapshot judges the newest snapshot in a folder, nil if there is none, and the error of reading it. (Pure.)
func judgeSnapshot(folder string, newest *backup.Kept, err error, now time.Time) Finding {
	const subject = "snapshots"
	if newest == nil {
		return Finding{Warning, subject, "there is none in " + folder,
			"the server makes one a minute after its start, and then daily; see --etcd-snapshot-interval. " +
				"If the server keeps them elsewhere, give wherry check its --etcd-snapshot-dir"}
	}
	age := now.Sub(newest.Created)
	switch {
	case err != nil:
		return Finding{Fault, subject, fmt.Sprintf("the newest, %s, %v", newest.Path, err),
			"remove it; the server makes another"}
	case age > staleSnapshot:
		return Finding{Warning, subject, fmt.Sprintf("the newest is %s old: %s", duration.HumanDuration(age),
			newest.Path), "see the server's log for why there is none since; sudo wherry backup makes one now"}
	}
	return Finding{Fine, subject, fmt.Sprintf("the newest is whole and %s old: %s", duration.HumanDuration(age),
		newest.Path), ""}
}

// judgeCertificates judges certificates by their ends. (Pure.)
func judgeCertificates(items []pki.Item, err error, now time.Time) []Finding {
	const subject = "certificates"
	if err != nil {
		return []Finding{{Fault, subject, err.Error(), "restore the file from a backup made with --keys"}}
	}
	var out []Finding
	for _, i := range items {
		if i.Ends == nil {
			continue
		}
		switch left := i.Ends.Sub(now); {
		case left <= 0:
			out = append(out, Finding{Fault, subject, fmt.Sprintf("%s (%s) ended on %s", i.Name, i.Where,
				i.Ends.Format(time.DateOnly)), "it is renewed: " + i.Renewal})
		case left < endsSoon && i.Renewal == pki.ByRotation:
			out = append(out, Finding{Warning, subject, fmt.Sprintf("%s (%s) ends on %s", i.Name, i.Where,
				i.Ends.Format(time.DateOnly)), "it is renewed: " + i.Renewal})
		}
	}
	if len(out) == 0 {
		out = []Finding{{Fine, subject, fmt.Sprintf("%d certificates and keys, none of which ends soon", len(items)),
			""}}
	}
	return out
}

// judgeModes judges the modes of what only root may read, by path. (Pure.)
func judgeModes(modes map[string]fs.FileMode) []Finding {
	const subject = "permissions"
	var out []Finding
	for _, path := range slices.Sorted(maps.Keys(modes)) {
		if m := modes[path]; m.Perm()&0o077 != 0 && m&fs.ModeSymlink == 0 {
			out = append(out, Finding{Warning, subject, fmt.Sprintf("others than root may use %s (mode %04o)", path,
				m.Perm()), "sudo chmod go= " + path})
		}
	}
	if len(out) == 0 {
		out = []Finding{{Fine, subject, "keys, store and snapshots are root's alone", ""}}
	}
	return out
}

// judgeRoom judges the room on the disk. (Pure.)
func judgeRoom(free, total uint64) Finding {
	const subject = "disk"
	what := fmt.Sprintf("%d of %d MiB are free", free>>20, total>>20)
	switch {
	case free < minFree:
		return Finding{Fault, subject, what,
			"free some space: images that no pod uses go with wherry image prune --all"}
	case free < total/20:
		return Finding{Warning, subject, what,
			"pods are evicted when it is full; images that no pod uses go with wherry image prune --all"}
	}
	return Finding{Fine, subject, what, ""}
}
