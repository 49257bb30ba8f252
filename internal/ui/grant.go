// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/wherryproject/wherry/internal/ui/gate"
	"github.com/wherryproject/wherry/internal/ui/oidc"
)

const (
	// renewBefore is how long before a token's end the next one is asked for, tryAgain how long after it could not be
	// had.
	renewBefore = time.Minute
	tryAgain    = 5 * time.Second
	// renewTime bounds what a request waits for that.
	renewTime = 15 * time.Second
	// giveBackTime bounds what signing out waits for the provider.
	giveBackTime = 3 * time.Second
)

// grant is what an identity provider has given to a session.
type grant struct {
	mu     sync.Mutex // held while the provider is asked: it is asked once for all requests that wait
	tokens oidc.Tokens
	failed time.Time // when it was last asked in vain
	why    *oidc.Problem
}

// bearer is the token by which a session asks the API, or why it has none at the moment.
func (p *Page) bearer(ctx context.Context, who *session) (string, *gate.Refusal) {
	if who.grant == nil {
		return who.token, nil
	}
	g := who.grant
	g.mu.Lock()
	defer g.mu.Unlock()
	if needs(g.tokens, g.failed, p.o.Now()) {
		p.renew(ctx, g)
	}
	return g.tokens.ID, g.refusal(p.o.Now())
}

// needs reports whether the next token is to be asked for.
func needs(t oidc.Tokens, failed, now time.Time) bool {
	return t.Refresh != "" && now.Add(renewBefore).After(t.Expires) && now.Sub(failed) >= tryAgain
}

// renew asks the provider for the next tokens. What it answers must not be lost if the browser goes meanwhile: many
// give a token to renew by once.
func (p *Page) renew(ctx context.Context, g *grant) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	next, err := p.o.Provider.Renew(ctx, g.tokens)
	if err == nil {
		if next.Refresh == "" {
			next.Refresh = g.tokens.Refresh
		}
		g.tokens, g.failed, g.why = next, time.Time{}, nil
		return
	}
	g.failed, g.why = p.o.Now(), &oidc.Problem{Words: err.Error()}
	_ = errors.As(err, &g.why)
	if g.why.Refused {
		g.tokens.Refresh = ""
	}
}

// refusal is why the token is of no use any more; nil: it is.
func (g *grant) refusal(now time.Time) *gate.Refusal {
	switch {
	case now.Before(g.tokens.Expires):
		return nil
	case g.why == nil:
		return &gate.Refusal{Code: http.StatusUnauthorized,
			Message: "what your identity provider gave you has expired: sign in again"}
	case g.why.Refused:
		return &gate.Refusal{Code: http.StatusUnauthorized, Message: "your sign-in could not be renewed: " +
			g.why.Words}
	}
	return &gate.Refusal{Code: http.StatusServiceUnavailable,
		Message: "your sign-in has to be renewed, which is tried again: " + g.why.Words}
}

// giveBack tells the provider that somebody has signed out, if it wants to know.
func (p *Page) giveBack(ctx context.Context, who *session) {
	if who == nil || who.grant == nil {
		return
	}
	who.grant.mu.Lock()
	defer who.grant.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, giveBackTime)
	defer cancel()
	_ = p.o.Provider.Revoke(ctx, who.grant.tokens) // it ends by itself too
}
