// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// lookAgain is how long a wait for a renewal is at most: a timer does not count the time that a machine sleeps, and
	// the clock may be set, of neither of which there is an event.
	lookAgain = time.Hour
	// renewPause is between two renewals.
	renewPause = time.Second
	// renewRetry is how long after a failure it is tried again. It doubles with each one, up to renewSlow.
	renewRetry = time.Minute
	renewSlow  = 10 * time.Minute
)

// RenewAt is when a certificate that was made at one time and ends at another is to be made anew: when four fifths of
// its time are over.
func RenewAt(made, end time.Time) time.Time { return made.Add(end.Sub(made) * 4 / 5) }

// Renewing is a certificate with its key that is made anew before it ends, as long as Run runs. It is safe for
// concurrent use.
type Renewing struct {
	name  string
	log   *slog.Logger
	issue func() (certPEM, keyPEM []byte, err error)

	mu      sync.Mutex
	cert    []byte
	key     []byte
	pair    *tls.Certificate
	due     time.Time
	renewed []func()
}

// NewRenewing makes the first certificate; the name is for the log.
func NewRenewing(name string, log *slog.Logger, issue func() (certPEM, keyPEM []byte, err error)) (*Renewing, error) {
	r := &Renewing{name: name, log: log, issue: issue}
	return r, r.renew()
}

func (r *Renewing) renew() error {
	made := time.Now()
	cert, key, err := r.issue()
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	r.mu.Lock()
	r.cert, r.key, r.pair, r.due = cert, key, &pair, RenewAt(made, pair.Leaf.NotAfter)
	tell := r.renewed
	r.mu.Unlock()
	for _, f := range tell {
		f()
	}
	return nil
}

// Run renews until ctx is done.
func (r *Renewing) Run(ctx context.Context) {
	wait := time.NewTimer(r.wait(0))
	defer wait.Stop()
	retry, told := renewRetry, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		pause := renewPause
		if !time.Now().Before(r.Due()) {
			before := r.Pair().Leaf.NotAfter
			err := r.renew()
			ends := r.Pair().Leaf.NotAfter
			switch {
			case err != nil:
				r.log.Error("certificate cannot be renewed", "certificate", r.name, "err", err, "next-try", retry)
				pause, retry = retry, min(2*retry, renewSlow)
			case !ends.After(before): // it ends with its authority: to make it again and again changes nothing
				if !told {
					r.log.Warn("certificate cannot be extended beyond the end of its CA", "certificate", r.name, "ends",
						ends)
				}
				pause, told = lookAgain, true
			default:
				r.log.Info("certificate is renewed", "certificate", r.name, "ends", ends)
				retry, told = renewRetry, false
			}
		}
		wait.Reset(r.wait(pause))
	}
}

func (r *Renewing) wait(least time.Duration) time.Duration {
	// Round drops the monotonic reading: the end of a certificate is a time on the wall clock.
	return min(lookAgain, max(least, r.Due().Sub(time.Now().Round(0))))
}

// Due is when the certificate is to be renewed.
func (r *Renewing) Due() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.due.Round(0)
}

// PEM is the certificate, with its chain, and the key.
func (r *Renewing) PEM() (cert, key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cert, r.key
}

// Pair is the certificate to use in TLS.
func (r *Renewing) Pair() *tls.Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pair
}

// OnRenewal has f called after every renewal; it must return at once.
func (r *Renewing) OnRenewal(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed = append(r.renewed, f)
}

// ServerSide is for tls.Config.GetCertificate.
func (r *Renewing) ServerSide(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.Pair(), nil }

// ClientSide is for tls.Config.GetClientCertificate.
func (r *Renewing) ClientSide(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return r.Pair(), nil
}
