// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"net/http"
	"strings"
	"testing"
)

// TestDropPulls proves RS-02: where the disk needs room, what failed pulls have left goes at once. A pull that is under
// way keeps what it has.
func TestDropPulls(t *testing.T) {
	r := start(t, dataFolder(t))
	reg, layer, data := oneLayer(t)
	breaks := func(w http.ResponseWriter, q *http.Request, blob []byte) bool {
		if !strings.HasSuffix(q.URL.Path, layer) {
			return false
		}
		if q.Header.Get("Range") == "" {
			breakOff(w, blob, len(blob)*3/4)
		}
		http.Error(w, "away", http.StatusNotFound)
		return true
	}
	reg.set(breaks)
	if _, err := pullFrom(t.Context(), r, reg); err == nil {
		t.Fatal("it has pulled from a registry that is away")
	}
	if len(halfFetched(t, r)) == 0 {
		t.Fatal("nothing is left of a pull that failed")
	}
	if err := r.DropPulls(t.Context()); err != nil {
		t.Error(err)
	}
	if refs, n := halfFetched(t, r), pullLeases(t, r); len(refs) > 0 || n > 0 {
		t.Errorf("left are %q, and %d leases", refs, n)
	}

	came, on := make(chan struct{}), make(chan struct{})
	reg.set(func(w http.ResponseWriter, q *http.Request, blob []byte) bool {
		if !strings.HasSuffix(q.URL.Path, layer) {
			return false
		}
		_, _ = w.Write(blob[:len(blob)*3/4])
		_ = http.NewResponseController(w).Flush()
		awaitPart(t, r.config.DataDir, len(data)/2)
		close(came)
		<-on
		_, _ = w.Write(blob[len(blob)*3/4:])
		return true
	})
	ended := make(chan error, 1)
	go func() { _, err := pullFrom(t.Context(), r, reg); ended <- err }()
	<-came
	if err := r.DropPulls(t.Context()); err != nil {
		t.Error(err)
	}
	if len(halfFetched(t, r)) == 0 {
		t.Error("what a pull under way has brought is gone")
	}
	close(on)
	if err := <-ended; err != nil {
		t.Errorf("the pull that was under way: %v", err)
	}
}
