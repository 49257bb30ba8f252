// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wherryproject/wherry/internal/pki"
)

// RS-07: a server whose CA has expired, or is not valid yet, does not start, and says what to do; after that it does.
// ATTACK C26.
func TestCheckAuthority(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		if err := checkAuthority(dir, time.Now()); err != nil {
			t.Errorf("a new folder: %v", err)
		}
		if _, err := pki.LoadOrCreate(PKI(dir), "test-ca"); err != nil {
			t.Fatal(err)
		}
		if err := checkAuthority(dir, time.Now()); err != nil {
			t.Errorf("a new CA: %v", err)
		}
		const years = 11 * 365 * 24 * time.Hour
		for what, tc := range map[string]struct {
			at   time.Time
			says []string
		}{
			"early": {time.Now().Add(-24 * time.Hour), []string{"is not valid before", "set the clock", "wherry certs rotate --data-dir " + dir}},
			"late":  {time.Now().Add(years), []string{"expired on", "nobody could connect", "wherry certs rotate --data-dir " + dir}},
		} {
			err := checkAuthority(dir, tc.at)
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Code != ExitAuthority {
				t.Errorf("%s: %v", what, err)
				continue
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q lacks %q", what, err, part)
				}
			}
		}
		time.Sleep(years)
		if err := pki.Rotate(PKI(dir)); err != nil {
			t.Fatal(err)
		}
		if err := checkAuthority(dir, time.Now()); err != nil {
			t.Errorf("after wherry certs rotate: %v", err)
		}
	})
}
