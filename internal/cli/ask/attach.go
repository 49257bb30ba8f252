// SPDX-License-Identifier: Apache-2.0

package ask

import "net/url"

// Attach is a request for the streams of a container's own process.
type Attach struct {
	Pod, Container string
	Stdin, TTY     bool
}

// Session is the request.
func (a Attach) Session() Session {
	return newSession(a.Pod, "attach", url.Values{"container": {a.Container}}, a.Stdin, a.TTY)
}
