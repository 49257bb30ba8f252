// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Insiders are the parts of this process that use its API, each as a user of its own: by a token that nobody else
// knows.
type Insiders struct {
	audiences authenticator.Audiences

	mu    sync.RWMutex
	known map[string]user.Info
}

var _ authenticator.Token = (*Insiders)(nil)

// NewInsiders knows nobody yet. audiences are whom their tokens are meant for: this server.
func NewInsiders(audiences authenticator.Audiences) *Insiders {
	return &Insiders{audiences: audiences, known: map[string]user.Info{}}
}

// AuthenticateToken implements authenticator.Token.
func (i *Insiders) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	u, ok := i.known[token]
	return &authenticator.Response{User: u, Audiences: i.audiences}, ok, nil
}

// Before asks the insiders' tokens before everybody's.
func (i *Insiders) Before(others authenticator.Request) authenticator.Request {
	return union.New(bearertoken.New(i), others)
}

// Add makes a user known, and returns the token to be known by.
func (i *Insiders) Add(name string, groups []string) (string, error) {
	token, err := RandomToken()
	if err != nil {
		return "", err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[token] = &user.DefaultInfo{Name: name, Groups: append([]string{user.AllAuthenticated}, groups...)}
	return token, nil
}
