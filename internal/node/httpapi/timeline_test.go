// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"testing"
)

// Timelines are for those who may read logs through the node: nodes/proxy.
func TestTimeline(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Timeline = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(rw, r.PathValue("namespace"), " ", r.PathValue("pod"), " ", r.URL.Query().Get("watch"))
		})
	})
	if status, body := w.get(w.masters, "/timeline/default/web?watch=1"); status != 200 || body != "default web 1" {
		t.Errorf("%d %q", status, body)
	}
	if status, _ := w.get(w.client("jane"), "/timeline/default/web"); status != http.StatusForbidden {
		t.Errorf("status %d for a user of no group", status)
	}
	if status, _ := w.do(w.masters, http.MethodPost, "/timeline/default/web"); status != http.StatusMethodNotAllowed {
		t.Errorf("status %d for a POST", status)
	}
	without := newWorld(t)
	if status, _ := without.get(without.masters, "/timeline/default/web"); status != http.StatusNotFound {
		t.Errorf("status %d without a handler", status)
	}
}
