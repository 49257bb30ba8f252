// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
)

// insiders are the parts of this process that use its API, each as a user of its own: by a token that nobody else knows.
type insiders struct {
	audiences authenticator.Audiences

	mu    sync.RWMutex
	known map[string]user.Info
}

var _ authenticator.Token = (*insiders)(nil)

// AuthenticateToken implements authenticator.Token.
func (i *insiders) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	u, ok := i.known[token]
	return &authenticator.Response{User: u, Audiences: i.audiences}, ok, nil
}

// before asks the insiders' tokens before everybody's.
func (i *insiders) before(others authenticator.Request) authenticator.Request {
	return union.New(bearertoken.New(i), others)
}

// As is a client configuration for a part of this process: in memory, as the user with the groups, which has the rights that
// roles or the node authorizer give it, and no more. The caller may change its copy.
func (s *Server) As(name string, groups ...string) (*rest.Config, error) {
	token, err := randomToken()
	if err != nil {
		return nil, err
	}
	s.insiders.mu.Lock()
	defer s.insiders.mu.Unlock()
	s.insiders.known[token] = &user.DefaultInfo{Name: name, Groups: append([]string{user.AllAuthenticated}, groups...)}
	config := s.Loopback()
	config.BearerToken = token
	return config, nil
}
