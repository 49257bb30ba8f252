// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"path/filepath"
	"testing"
)

// Identity: the authority of pods' certificates is listed once it is there.
func TestInventoryOfPods(t *testing.T) {
	dir := t.TempDir()
	count := func() (n int) {
		items, err := Inventory(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			if i.Subject == "CN=wherry-pods-ca" && i.Ends != nil && i.Renewal == ByRotation {
				n++
			}
		}
		return n
	}
	if n := count(); n != 0 {
		t.Errorf("%d before there is one", n)
	}
	if _, err := LoadOrCreate(filepath.Join(dir, "pki", "pods"), "wherry-pods-ca"); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1 {
		t.Errorf("listed %d times", n)
	}
}
