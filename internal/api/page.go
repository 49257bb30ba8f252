// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"github.com/wherryproject/wherry/internal/release"
	"github.com/wherryproject/wherry/internal/ui"
)

// page puts the page before the chain of handlers; nil: there is none.
func (s *Server) page() func(chain http.Handler) http.Handler {
	if !s.cfg.Page {
		return nil
	}
	names, _ := s.cfg.certNames(s.data.addresses.First())
	return func(chain http.Handler) http.Handler {
		return ui.Before(chain, ui.Options{Names: names, AnyIP: true, Port: s.Port(), Version: release.Version(),
			HSTS: s.cfg.Serving.HSTS, Provider: s.cfg.Authentication.Provider, Log: s.log})
	}
}
