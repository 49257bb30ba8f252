// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// DA-09: who goes on with a copy from the start, as the same command does later, passes other files on the way to the
// one that was cut: small ones, which are not asked about, and large ones that are whole. Neither costs what has come
// of that one, and of the whole ones nothing is sent again.
func TestKeepAgainFromTheStart(t *testing.T) {
	dir := t.TempDir()
	files := []struct {
		name    string
		content []byte
		asked   bool
	}{
		{"in/a", []byte("small"), false},
		{"in/b", random(600_100)[100:], true},
		{"in/c", random(900_000), true},
	}
	var all []byte
	for _, f := range files {
		all = append(all, keptEntry(t, tar.Header{Name: f.name}, f.content)...)
	}
	const missing = 300_000 // of the last file
	k := keep(t, dir, "/")
	k.send(framed(all[:len(all)-missing]))
	if err := k.end(); err == nil {
		t.Fatal("an archive that was cut off is well")
	}

	k = keep(t, dir, "/")
	k.says() // the greeting
	sent := 0
	for _, f := range files {
		has, record := 0, map[string]string(nil)
		if f.asked {
			k.send(framed(askFor(t, f.name, len(f.content))))
			words := strings.Fields(k.says())
			if len(words) != 3 {
				t.Fatalf("of %s: %q", f.name, words)
			}
			has, _ = strconv.Atoi(words[1])
			if has == 0 || words[2] != fmt.Sprintf("%x", sha256.Sum256(f.content[:has])) {
				t.Errorf("of %s there are %d bytes, or others", f.name, has)
				has = 0
			} else if words[0] == "whole" {
				continue
			} else {
				record = map[string]string{OffsetRecord: words[1]}
			}
		}
		sent += len(f.content) - has
		k.send(framed(keptEntry(t, tar.Header{Name: f.name, PAXRecords: record}, f.content[has:])))
	}
	k.send(theEnd)
	if err := k.end(); err != nil || k.errs.Len() > 0 {
		t.Fatalf("%v: %s", err, &k.errs)
	}
	if most := missing + 1024 + len(files[0].content); sent > most { // the archive has blocks
		t.Errorf("%d bytes are sent again, at most %d are missing", sent, most)
	}
	for _, f := range files {
		if got, err := os.ReadFile(filepath.Join(dir, f.name)); err != nil || !bytes.Equal(got, f.content) {
			t.Errorf("%s has %d bytes of %d, or others: %v", f.name, len(got), len(f.content), err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "in")); err != nil || len(entries) != len(files) {
		t.Errorf("there are %v, %v", entries, err)
	}
}

// A part's name is one that is taken away when nobody comes back for it, and no other file's or copy's.
func TestPartName(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range []*kept{{token: token}, {token: strings.Repeat("A", tokenSize)}} {
		for _, base := range []string{"a", "b", strings.Repeat("x", 255), "a\xff"} {
			name := k.partName(base)
			if rest, is := strings.CutPrefix(name, partPrefix); !is || checkToken(rest) != nil || seen[name] {
				t.Errorf("%s of %s: %s", base, k.token, name)
			}
			seen[name] = true
		}
	}
}
