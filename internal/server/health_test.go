// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/pki"
)

// RS-07: snapshots are looked for where the server keeps them.
func TestCheckKnowsTheSnapshotFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may look at a data folder")
	}
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := checkVersion(dir, stamp{Format: format}); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(elsewhere, backup.KeptName(time.Now()))
	if err := os.WriteFile(damaged, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	find := func(snapshots, subject string) Finding {
		t.Helper()
		all, err := Check(t.Context(), dir, snapshots, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(f Finding) bool { return f.Subject == subject && f.Severity != Fine })
		if i < 0 {
			return Finding{Severity: Fine}
		}
		return all[i]
	}
	if f := find("", "snapshots"); f.Severity != Warning || !strings.Contains(f.What+f.Do, dir) ||
		!strings.Contains(f.Do, "--etcd-snapshot-dir") {
		t.Errorf("none in the data folder: %+v", f)
	}
	if f := find(elsewhere, "snapshots"); f.Severity != Fault || !strings.Contains(f.What, damaged) {
		t.Errorf("a damaged one elsewhere: %+v", f)
	}
	if f := find(elsewhere, "permissions"); !strings.Contains(f.What+f.Do, damaged) {
		t.Errorf("one that everybody may read: %+v", f)
	}
}

// RS-07: what is wrong with a data folder is told apart from what is well, and from what only will be wrong.
func TestJudgements(t *testing.T) {
	const gib = 1 << 30
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ends := func(in time.Duration) *time.Time { at := now.Add(in); return &at }
	certificate := func(in time.Duration, renewal string) Finding {
		return judgeCertificates([]pki.Item{{Name: "CA", Ends: ends(in), Renewal: renewal}, {Name: "key"}}, nil, now)[0]
	}
	mode := func(m fs.FileMode) Finding { return judgeModes(map[string]fs.FileMode{"/d/pki/ca.key": m})[0] }
	kept := func(age time.Duration) *backup.Kept { return &backup.Kept{Created: now.Add(-age)} }
	day := 24 * time.Hour
	for name, tc := range map[string]struct {
		got  Finding
		want Severity
	}{
		"version":                               {judgeStamp(stamp{Format: format}, nil), Fine},
		"newer version":                         {judgeStamp(stamp{Format: format + 1}, nil), Fault},
		"unreadable version":                    {judgeStamp(stamp{}, errors.New("x")), Fault},
		"no store, never one":                   {judgeMissing("/d", 0, false, ""), Fine},
		"no store, but pods":                    {judgeMissing("/d", 2, false, ""), Fault},
		"no store, but had one":                 {judgeMissing("/d", 0, true, ""), Fault},
		"no snapshot":                           {judgeSnapshot("/s", nil, nil, now), Warning},
		"snapshot":                              {judgeSnapshot("/s", kept(day), nil, now), Fine},
		"old snapshot":                          {judgeSnapshot("/s", kept(9*day), nil, now), Warning},
		"broken snapshot":                       {judgeSnapshot("/s", kept(day), backup.ErrBroken, now), Fault},
		"CA":                                    {certificate(999*day, pki.ByRotation), Fine},
		"CA that ends soon":                     {certificate(20*day, pki.ByRotation), Warning},
		"CA that has ended":                     {certificate(-day, pki.ByRotation), Fault},
		"certificate that is renewed by itself": {certificate(20*day, "by the running server"), Fine},
		"certificate that cannot be read":       {judgeCertificates(nil, errors.New("x"), now)[0], Fault},
		"key of root's":                         {mode(0o600), Fine},
		"key of everybody":                      {mode(0o644), Warning},
		"room":                                  {judgeRoom(50*gib, 100*gib), Fine},
		"little room":                           {judgeRoom(2*gib, 100*gib), Warning},
		"no room":                               {judgeRoom(100<<20, 100*gib), Fault},
		"little, but a lot":                     {judgeRoom(300<<20, gib), Fine},
	} {
		if tc.got.Severity != tc.want {
			t.Errorf("%s: %+v, want %s", name, tc.got, tc.want)
		}
		if tc.want != Fine && tc.got.What == "" {
			t.Errorf("%s: no words", name)
		}
	}
}
