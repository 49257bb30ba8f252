// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"crypto/subtle"
	"slices"
	"sync"
	"time"
)

const (
	// linkLife is how long a link signs in that nobody has used.
	linkLife = 5 * time.Minute
	// mostLinks bounds those that wait to be used; the oldest goes.
	mostLinks = 16
)

// links are those that sign in once.
type links struct {
	now func() time.Time

	mu      sync.Mutex
	waiting []link // oldest first
}

type link struct {
	hash secretHash
	made time.Time
}

// add makes a link's secret.
func (l *links) add() (secret string) {
	secret = newSecret()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	if len(l.waiting) >= mostLinks {
		l.waiting = l.waiting[1:]
	}
	l.waiting = append(l.waiting, link{hashOf(secret), l.now()})
	return secret
}

// use reports whether a secret is that of a link, which it uses up. All are compared, each in constant time.
func (l *links) use(secret string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	hash, at := hashOf(secret), -1
	for i := range l.waiting {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], l.waiting[i].hash[:]), i, at)
	}
	if at < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	return true
}

func (l *links) expire() {
	l.waiting = slices.DeleteFunc(l.waiting, func(one link) bool { return l.now().Sub(one.made) >= linkLife })
}
