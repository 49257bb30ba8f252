// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"bytes"
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

// FuzzLogText takes the format off a container's log, which may be of any runtime, and cut.
func FuzzLogText(f *testing.F) {
	f.Add([]byte("2026-11-20T10:00:00.1Z stdout F x\n2026-11-20T10:00:00.1Z stderr P y"))
	f.Add([]byte("   \n\n a b  \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if out := logText(data); len(out) > len(data) || bytes.Count(out, []byte("\n")) > bytes.Count(data, []byte("\n"))+1 {
			t.Errorf("%q becomes %q", data, out)
		}
		if code := startCode(string(data)); code < 0 || code > 255 {
			t.Errorf("%q: exit code %d", data, code)
		}
		_ = innermost(string(data))
	})
}
