// SPDX-License-Identifier: Apache-2.0

package podcert

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const (
	overdue = 10 * time.Minute // after the time at which the signer wants to be asked anew
	// lookAgain is the longest wait for a time: the clock may be set meanwhile, of which there is no event.
	lookAgain = time.Minute
	// pending is how long a pod waits for its first certificate before an event shows that it waits.
	pending    = 20 * time.Second
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// facts are what is known of one certificate.
type facts struct {
	has     bool // there is one, with these times
	renew   time.Time
	ends    time.Time
	asked   bool      // a request is under way
	refused bool      // for good
	notYet  time.Time // after a failure: no request before

	askedAt         time.Time // of the request that is under way
	reportedPending bool      // of this pod

	reportedOverdue, reportedEnd bool // of this certificate
}

// step is what is due.
type step struct {
	ask                      bool
	reportOverdue, reportEnd bool
	reportPending            bool
	again                    time.Time // when to look again; zero: only when something has happened
}

// next decides what is due at a time.
func next(f facts, now time.Time) (s step) {
	if f.refused {
		return step{}
	}
	soonest := func(t time.Time) {
		if t.After(now) && (s.again.IsZero() || t.Before(s.again)) {
			s.again = t
		}
	}
	due := !f.has || !now.Before(f.renew)
	switch {
	case f.asked && !f.has && !f.reportedPending:
		s.reportPending = !now.Before(f.askedAt.Add(pending))
		soonest(f.askedAt.Add(pending))
	case f.asked:
	case !due:
		soonest(f.renew)
	case now.Before(f.notYet):
		soonest(f.notYet)
	default:
		s.ask = true
	}
	if f.has {
		s.reportOverdue = !f.reportedOverdue && !now.Before(f.renew.Add(overdue))
		s.reportEnd = !f.reportedEnd && !now.Before(f.ends)
		if !f.reportedOverdue {
			soonest(f.renew.Add(overdue))
		}
		if !f.reportedEnd {
			soonest(f.ends)
		}
	}
	return s
}

// backOff is how long to wait after so many failures in a row.
func backOff(failures int) time.Duration {
	wait := firstRetry
	for range failures - 1 {
		if wait *= 2; wait >= lastRetry {
			return lastRetry
		}
	}
	return wait
}

// verdict is how a signer has answered: the condition's type, "" as long as it has not.
func verdict(r *certificatesv1.PodCertificateRequest) (kind, reason, message string) {
	for _, c := range r.Status.Conditions {
		switch c.Type {
		case certificatesv1.PodCertificateRequestConditionTypeIssued,
			certificatesv1.PodCertificateRequestConditionTypeDenied,
			certificatesv1.PodCertificateRequestConditionTypeFailed:
			return c.Type, c.Reason, c.Message
		}
	}
	return "", "", ""
}
