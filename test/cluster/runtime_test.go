// SPDX-License-Identifier: Apache-2.0

package cluster

import "strings"

// installBlind installs where no runtime is: it is said at once, and by the state, where was looked and what to do; the
// right installation then follows. (DA-10)
func (u user) installBlind() {
	u.t.Helper()
	r := u.wherry("cluster", "install", "--image-pull-policy", "Never", "--cri-socket", "/none.sock", "--timeout", "90s")
	status := u.wherry("cluster", "status")
	for _, text := range []string{r.err, status.out} {
		if r.code != 1 || !strings.Contains(text, "there is no socket /none.sock") ||
			!strings.Contains(text, "--cri-socket PATH") {
			u.t.Errorf("DA-10: where no runtime is: install: %s\nstatus: %s", r, status)
			return
		}
	}
}
