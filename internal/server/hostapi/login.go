// SPDX-License-Identifier: Apache-2.0

package hostapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/wherryproject/wherry/internal/registry"
)

// LoggedIn says what came of a login or logout.
type LoggedIn struct {
	Registry string `json:"registry"`
	File     string `json:"file"`  // where the node's logins are kept
	Asked    bool   `json:"asked"` // the registry wanted to see the login; else nobody knows whether it is right
}

// loginOf reads the login in a request's body, nil if there is none.
func loginOf(r *http.Request) (*registry.Login, error) {
	var l registry.Login
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&l)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the login in the request cannot be read: %w", err)
	}
	return &l, nil
}

func (s *Server) login(r *http.Request) (any, error) {
	l, err := loginOf(r)
	if err != nil {
		return nil, err
	}
	if l == nil || l.User == "" || l.Password == "" {
		return nil, errors.New("a login needs a user and a password")
	}
	return s.Login(r.Context(), r.FormValue("registry"), *l)
}

func (s *Server) logout(r *http.Request) (any, error) {
	return s.Logout(r.FormValue("registry"))
}
