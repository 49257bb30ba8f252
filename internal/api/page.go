// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"time"

	"github.com/wherryproject/wherry/internal/release"
	"github.com/wherryproject/wherry/internal/ui"
	"github.com/wherryproject/wherry/internal/ui/oidc"
)

// page puts the page before the chain of handlers; nil: there is none.
func (s *Server) page() func(chain http.Handler) http.Handler {
	if !s.cfg.Page {
		return nil
	}
	names, _ := s.cfg.certNames(s.data.addresses.First())
	return func(chain http.Handler) http.Handler {
		return ui.Before(chain, ui.Options{Names: names, AnyIP: true, Port: s.Port(), Version: release.Version(),
			HSTS: s.cfg.Serving.HSTS, Provider: s.cfg.provider})
	}
}

// setProvider finds out where people may sign in to the page beside.
func (s *completed) setProvider() (err error) {
	at := s.Authentication.Client()
	if !s.Page || at == nil {
		return nil
	}
	s.provider, err = oidc.New(oidc.Options{Issuer: at.Issuer, ClientID: at.ID, Secret: at.Secret, CA: []byte(at.CA),
		Now: time.Now})
	return err
}
