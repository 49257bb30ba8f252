// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/wherryproject/wherry/internal/ui/gate"
	"github.com/wherryproject/wherry/internal/ui/oidc"
)

const (
	// renewBefore is how long before a token's end the next one is asked for, and no more than a quarter of its life:
	// some live for less than a minute. tryAgain is how long after it could not be had.
	renewBefore = time.Minute
	tryAgain    = 5 * time.Second
	// renewTime bounds what a request waits for that.
	renewTime = 15 * time.Second
	// giveBackTime bounds what signing out waits for the provider.
	giveBackTime = 3 * time.Second
)

// grant is what an identity provider has given to a session.
type grant struct {
	turn chan struct{} // has room for the one who asks the provider, who alone changes the tokens

	mu     sync.Mutex // guards what follows; nobody is asked while it is held
	tokens oidc.Tokens
	came   time.Time // when the ID token did
	failed time.Time // when the provider was last asked in vain
	why    *oidc.Problem
	over   bool // the session has ended: nothing is renewed, and what comes is given back
}

func newGrant(tokens oidc.Tokens, now time.Time) *grant {
	return &grant{turn: make(chan struct{}, 1), tokens: tokens, came: now}
}

// bearer is the token by which a session asks the API, or why it has none at the moment. The provider is asked once for
// all requests that want the next one; who has a good one meanwhile does not wait for whoever asks.
func (p *Page) bearer(ctx context.Context, who *session) (string, *gate.Refusal) {
	g := who.grant
	if g == nil {
		return who.token, nil
	}
	token, refusal, due := g.at(p.o.Now())
	if !due {
		return token, refusal
	}
	select {
	case g.turn <- struct{}{}:
	default:
		if refusal == nil {
			return token, nil
		}
		select {
		case g.turn <- struct{}{}:
		case <-ctx.Done():
			return "", &gate.Refusal{Code: http.StatusServiceUnavailable, Message: "your sign-in is being renewed"}
		}
	}
	defer func() { <-g.turn }()
	if _, _, due = g.at(p.o.Now()); due { // else it was renewed meanwhile, or could not be
		p.renew(ctx, g)
	}
	token, refusal, _ = g.at(p.o.Now())
	return token, refusal
}

// at is the token at a time, why it is of no use, and whether the next one is to be asked for.
func (g *grant) at(now time.Time) (token string, refusal *gate.Refusal, due bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	due = g.tokens.Refresh != "" && !g.over && (g.why == nil || !g.why.Refused) && now.Sub(g.failed) >= tryAgain &&
		needs(g.came, g.tokens.Expires, now)
	return g.tokens.ID, g.refusal(now), due
}

// needs reports whether a token that came and expires at these times is to be renewed.
func needs(came, expires, now time.Time) bool {
	return expires.Sub(now) < min(renewBefore, expires.Sub(came)/4)
}

// renew asks the provider for the next tokens; the caller has the turn. What the provider answers must not be lost if
// the browser goes meanwhile: many give a token to renew by once.
func (p *Page) renew(ctx context.Context, g *grant) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	next, err := p.o.Provider.Renew(ctx, g.tokens)
	g.mu.Lock()
	g.takes(next, err, p.o.Now())
	if err == nil && next.ID == "" {
		g.why = &oidc.Problem{Refused: true, Words: oidc.Name(p.o.Provider.Issuer()) +
			" renews it without a new ID token, and the server takes nothing else: sign in again"}
	}
	over := g.over
	g.mu.Unlock()
	if over {
		p.revoke(ctx, g)
	}
}

// takes takes what came of a renewal.
func (g *grant) takes(next oidc.Tokens, err error, now time.Time) {
	switch {
	case err == nil && next.ID == "":
		g.tokens.Refresh = next.Refresh // to be given back: the one before may be of no use by now
	case err == nil:
		g.tokens, g.came, g.failed, g.why = next, now, time.Time{}, nil
	default:
		g.failed, g.why = now, &oidc.Problem{Words: err.Error()}
		_ = errors.As(err, &g.why)
		if g.why.Refused {
			g.tokens.Refresh = ""
		}
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

// giveBack tells the provider that a session has ended, if it wants to know: also when the browser goes meanwhile, and
// within giveBackTime. Whoever is asking the provider for the next token does it instead, when that has come.
func (p *Page) giveBack(ctx context.Context, who *session) {
	if who == nil || who.grant == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	g := who.grant
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
		p.revoke(ctx, g)
	case <-ctx.Done():
	}
}

// revoke revokes the token to renew by, if there is one; the caller has the turn.
func (p *Page) revoke(ctx context.Context, g *grant) {
	g.mu.Lock()
	had := g.tokens
	g.tokens.Refresh = ""
	g.mu.Unlock()
	if had.Refresh == "" {
		return
	}
	if err := p.o.Provider.Revoke(ctx, had); err != nil { // it ends by itself, too
		p.o.Log.Warn("the refresh token of a session that has ended could not be revoked", "err", err)
	}
}

// gone gives back what sessions had that have ended. Nobody waits for it, and it ends: sessions are few, and one is
// given back after the other, each within giveBackTime.
func (p *Page) gone(all []*session) {
	all = slices.DeleteFunc(all, func(one *session) bool { return one == nil || one.grant == nil })
	if len(all) == 0 {
		return
	}
	go func() {
		for _, one := range all {
			p.giveBack(context.Background(), one)
		}
	}()
}
