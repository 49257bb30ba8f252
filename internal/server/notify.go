// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"os"
	"strings"
)

// notifier is the service manager's socket, empty when there is none (sd_notify(3)).
type notifier string

// takeNotifier takes the service manager's socket out of the environment. It is for this process alone: the Kubernetes
// API library would send the manager READY=1 as soon as the API listens, long before the node is, and runc would mount
// the socket into containers.
func takeNotifier() (notifier, error) {
	name := os.Getenv("NOTIFY_SOCKET")
	return notifier(name), os.Unsetenv("NOTIFY_SOCKET")
}

// send sends the service manager a state ("READY=1", "STOPPING=1").
func (n notifier) send(state string) error {
	if n == "" {
		return nil
	}
	name := string(n)
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		name = "\x00" + rest
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return err
}
