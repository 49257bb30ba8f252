// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"net/url"
	"testing"
)

// FuzzParse reads requests for image exec.
func FuzzParse(f *testing.F) {
	f.Add("image=a&command=ls&command=-l&input=1&output=1&tty=1&user=1:2&pullPolicy=Always")
	f.Add("image=wherry.dev/toolbox&output=1&command=&userOf=x&writable=2")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		r, err := Parse(q)
		if err == nil && (r.Image == "" || r.Policy == "" || r.TTY && r.Stderr || !r.Stdin && !r.Stdout && !r.Stderr || r.User != nil && r.User.UID < 0) {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

// FuzzMessages reads what a runtime says of a command that it cannot run.
func FuzzMessages(f *testing.F) {
	f.Add("OCI runtime exec failed: exec failed: unable to start container process")
	f.Fuzz(func(t *testing.T, text string) {
		if code := startCode(text); code < 0 || code > 255 {
			t.Errorf("%q: exit code %d", text, code)
		}
		_ = innermost(text)
	})
}
