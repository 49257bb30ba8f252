// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
)

// insiders are the parts of this process that use its API, each as a user of its own: by a token that nobody else knows.
type insiders struct {
	audiences authenticator.Audiences

	mu    sync.RWMutex
	known map[string]user.Info
}

var _ authenticator.Token = (*insiders)(nil)

func newInsiders(audiences authenticator.Audiences) *insiders {
	return &insiders{audiences: audiences, known: map[string]user.Info{}}
}

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

// add makes a user known, and returns the token to be known by.
func (i *insiders) add(name string, groups []string) (string, error) {
	token, err := randomToken()
	if err != nil {
		return "", err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[token] = &user.DefaultInfo{Name: name, Groups: append([]string{user.AllAuthenticated}, groups...)}
	return token, nil
}
