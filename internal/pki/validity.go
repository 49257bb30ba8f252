// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"time"
)

// ValidityError says that a certificate authority is not valid at this time, and so nothing that it has signed or could
// sign.
type ValidityError struct {
	NotBefore, NotAfter time.Time // of its certificate
	Now                 time.Time // by this machine's clock
}

// Early reports whether it is not valid yet, which most often means that the clock is wrong.
func (e *ValidityError) Early() bool { return e.Now.Before(e.NotBefore) }

func (e *ValidityError) Error() string {
	day := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
	if e.Early() {
		return fmt.Sprintf("the certificate authority is not valid before %s, and this machine's clock says %s",
			day(e.NotBefore), day(e.Now))
	}
	return fmt.Sprintf("the certificate authority expired on %s", day(e.NotAfter))
}

// ValidAt returns a *ValidityError if the CA's own certificate is not valid at that time.
func (c *CA) ValidAt(now time.Time) error {
	if now.Before(c.cert.NotBefore) || !now.Before(c.cert.NotAfter) {
		return &ValidityError{NotBefore: c.cert.NotBefore, NotAfter: c.cert.NotAfter, Now: now}
	}
	return nil
}
