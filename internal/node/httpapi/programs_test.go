// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

// TestPrograms: RS-01: the commands that exec runs in a pod are bounded, those without a client too; one more is refused with 429 and what
// to do, and other pods are not concerned.
func TestPrograms(t *testing.T) {
	w := newWorld(t)
	var end []func()
	for range maxPrograms {
		e, err := w.server.programs.begin("uid-1", "web")
		if err != nil {
			t.Fatal(err)
		}
		end = append(end, e)
	}
	code, text := w.do(w.masters, http.MethodPost, "/exec/default/web/main?command=true&output=1")
	if code != http.StatusTooManyRequests || !strings.Contains(text, `pod "web" has 256 commands running`) {
		t.Errorf("%d %s", code, text)
	}
	if _, err := w.server.programs.begin("uid-2", "other"); err != nil {
		t.Error(err)
	}
	end[0]()
	end[0]() // counts once
	if _, err := w.server.programs.begin("uid-1", "web"); err != nil {
		t.Error(err)
	}
	if _, err := w.server.programs.begin("uid-1", "web"); err == nil {
		t.Error("one end has made room for two")
	}
}
