// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// Identity is a certificate, and the authority that it is of.
type Identity struct {
	Certificate tls.Certificate // with its key
	Leaf        *x509.Certificate
	Roots       *x509.CertPool
}

// Keeper keeps an identity. Make one with [New].
type Keeper struct {
	cluster Cluster
	node    string
	say     func(string, ...any)
	now     atomic.Pointer[Identity]
	first   chan struct{} // closed once there is one
	hurry   chan struct{}
	calm    time.Duration // that a new identity is not hurried
}

// New makes a keeper of a node's identity; say logs what goes wrong.
func New(cluster Cluster, node string, say func(string, ...any)) *Keeper {
	return &Keeper{cluster: cluster, node: node, say: say, first: make(chan struct{}),
		hurry: make(chan struct{}, 1), calm: hurryPause}
}

// Now is the identity; nil if there is none yet.
func (k *Keeper) Now() *Identity { return k.now.Load() }

// First is closed once there is an identity.
func (k *Keeper) First() <-chan struct{} { return k.first }

// Hurry says that the authority may be another than the one that the identity is of: a new one is asked for, but not
// more often than every few minutes, whoever says so, and ever less often while it is not true.
func (k *Keeper) Hurry() {
	select {
	case k.hurry <- struct{}{}:
	default:
	}
}

const (
	firstPause = time.Second
	mostPause  = time.Minute
	hurryPause = 3 * time.Minute
	mostCalm   = 30 * time.Minute
)

// Run gets an identity and renews it until the end of ctx. What fails is tried again, ever less often.
func (k *Keeper) Run(ctx context.Context) {
	pause, hurried := firstPause, false
	for ctx.Err() == nil {
		id, err := k.ask(ctx)
		wait := pause
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			k.say("no certificate: %v; trying again in %s", err, pause)
			pause = min(pause*2, mostPause)
		default:
			old := k.now.Swap(id)
			if old == nil {
				close(k.first)
			}
			k.calm = calmFor(k.calm, hurried && old != nil && old.Roots.Equal(id.Roots))
			k.say("certificate of %s until %s", id.Leaf.Subject.CommonName, id.Leaf.NotAfter.Format(time.RFC3339))
			pause = firstPause
			wait = renewIn(time.Now(), id.Leaf.NotBefore, id.Leaf.NotAfter, mathrand.Float64())
		}
		began := time.Now()
		if !k.pause(ctx, wait, err == nil) {
			return
		}
		hurried = time.Since(began) < wait
	}
}

// calmFor is how long nobody is heard who says that the authority is another, where it was so long before; in vain: the
// last one who said so was wrong. (Pure.)
func calmFor(before time.Duration, inVain bool) time.Duration {
	if !inVain {
		return hurryPause
	}
	return min(2*before, mostCalm)
}

// pause waits until it is time to ask again; it reports whether it is.
func (k *Keeper) pause(ctx context.Context, wait time.Duration, has bool) bool {
	hurry := k.hurry
	if least := min(wait, k.calm); has && wait > least {
		if !sleep(ctx, least, nil) {
			return false
		}
		wait -= least
	} else {
		hurry = nil
	}
	return sleep(ctx, wait, hurry)
}

// sleep waits for a time, or until it is woken; it reports whether ctx goes on.
func sleep(ctx context.Context, wait time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return true
}

// renewIn is how long a certificate is used: two thirds of its life, less up to a tenth, so that not all agents ask at
// once. chance is from 0 to 1. (Pure.)
func renewIn(now, from, until time.Time, chance float64) time.Duration {
	life := float64(until.Sub(from))
	at := from.Add(time.Duration(life * (2.0/3 - chance/10)))
	return max(at.Sub(now), firstPause)
}

// ask gets a certificate for a new key.
func (k *Keeper) ask(ctx context.Context) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: wire.AgentPrefix + k.node, Organization: []string{wire.AgentOrg}},
		DNSNames: []string{wire.ServerName(k.node)}}, key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
	chain, err := k.cluster.sign(ctx, text)
	if err != nil {
		return nil, err
	}
	return take(chain, key, k.node, time.Now())
}

// take makes an identity of what the cluster has answered, or says what is wrong with that.
func take(chain []byte, key *ecdsa.PrivateKey, node string, now time.Time) (*Identity, error) {
	certs, err := parseChain(chain)
	if err != nil {
		return nil, err
	}
	leaf, ca := certs[0], certs[1]
	if pub, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || !pub.Equal(&key.PublicKey) {
		return nil, errors.New("the certificate is of another key")
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: wire.ServerName(node),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		return nil, err
	}
	if !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		return nil, errors.New("the certificate is not made for serving alone")
	}
	return &Identity{Leaf: leaf, Roots: roots,
		Certificate: tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}}, nil
}

// parseChain reads a certificate and its authority, and nothing else. (Pure.)
func parseChain(text []byte) (certs []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("the answer has a %q in it", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the answer's certificate: %w", err)
		}
		certs = append(certs, cert)
	}
	if len(certs) != 2 || !certs[1].IsCA {
		return nil, errors.New("the answer is not a certificate followed by its authority")
	}
	return certs, nil
}
