// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What client-go had until Kubernetes 1.33 begins to read a WebSocket before it has made the streams, and throws away
// what comes for a stream that is not there yet ("Unknown stream id 1, discarding message",
// kubernetes/kubernetes#131189): the prompt of a shell that was there first, and the user waits for it. So such a
// client is told nothing before it has said something, which it does when its streams are there: on a terminal, its
// size. A client that has nothing to say makes its streams within that time as well.
const (
	holdOnTerminal = 50 * time.Millisecond
	holdOtherwise  = 5 * time.Millisecond
)

// mended is the first minor version of kubectl that makes its streams before it reads.
const mended = 34

// EarlyReader is how long a client may have to be spared; 0 if it is known to take everything.
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
