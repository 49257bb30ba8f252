// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Until Kubernetes 1.33, client-go begins to read a WebSocket before it has made the streams, and throws away what
// comes for a stream that does not exist yet ("Unknown stream id 1, discarding message", kubernetes/kubernetes#131189):
// the prompt of a shell that started sooner, for which the user then waits. So nothing is sent to such a client before
// it has sent something, which it does once its streams exist: on a terminal, its size. A client that has nothing to
// send makes its streams within that time as well.
const (
	holdOnTerminal = 50 * time.Millisecond
	holdOtherwise  = 5 * time.Millisecond
)

// mended is the first minor version of kubectl that makes its streams before it reads.
const mended = 34

// EarlyReader is how long output must be held back for a client that may read too early; 0 for one that does not.
func EarlyReader(req *http.Request) time.Duration {
	agent := req.UserAgent()
	if strings.HasPrefix(agent, "wherry") { // kubectl as a part of it, too
		return 0
	}
	if version, ok := strings.CutPrefix(agent, "kubectl/v1."); ok {
		minor, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(minor); err == nil && n >= mended {
			return 0
		}
	}
	if tty, err := strconv.ParseBool(req.URL.Query().Get(corev1.ExecTTYParam)); err == nil && tty {
		return holdOnTerminal
	}
	return holdOtherwise
}
