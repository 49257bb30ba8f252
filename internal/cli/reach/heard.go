// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"errors"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Heard has notify called when the server of config, which has answered before, is heard of no more, and when it
// answers again: once for each change, however many requests meet it. It goes on top of Guard, whose *Away it looks
// for.
func Heard(config *rest.Config, notify func(away bool)) {
	h := &hearing{notify: notify}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			h.note(err)
			return resp, err
		})
	})
}

// hearing is whether a server was heard of last.
type hearing struct {
	notify func(away bool)

	mu       sync.Mutex // held while notify is called, so that the order is right
	answered bool
	away     bool
}

func (h *hearing) note(err error) {
	_, unreached := errors.AsType[*Away](err)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil && h.away:
		h.away = false
		h.notify(false)
	case err == nil:
		h.answered = true
	case unreached && h.answered && !h.away:
		h.away = true
		h.notify(true)
	}
}
