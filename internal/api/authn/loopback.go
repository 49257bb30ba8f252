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

// LoopbackUsers are the parts of this process that use its API, each as a user of its own: by a token that nobody else
// knows.
type LoopbackUsers struct {
	audiences authenticator.Audiences

	mu    sync.RWMutex
	known map[string]user.Info
}

var _ authenticator.Token = (*LoopbackUsers)(nil)

// NewLoopbackUsers has no users yet. audiences are those of their tokens: this server.
func NewLoopbackUsers(audiences authenticator.Audiences) *LoopbackUsers {
	return &LoopbackUsers{audiences: audiences, known: map[string]user.Info{}}
}

// AuthenticateToken implements authenticator.Token.
func (i *LoopbackUsers) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	u, ok := i.known[token]
	return &authenticator.Response{User: u, Audiences: i.audiences}, ok, nil
}

// Before authenticates loopback users before others.
func (i *LoopbackUsers) Before(others authenticator.Request) authenticator.Request {
	return union.New(bearertoken.New(i), others)
}

// Add adds a user and returns its token.
func (i *LoopbackUsers) Add(name string, groups []string) (string, error) {
	token, err := RandomToken()
	if err != nil {
		return "", err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[token] = &user.DefaultInfo{Name: name, Groups: append([]string{user.AllAuthenticated}, groups...)}
	return token, nil
}
