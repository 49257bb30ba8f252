// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"os"
	"strings"
)

// notify tells the service manager a state ("READY=1", "STOPPING=1") if there is one (sd_notify(3)).
func notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
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
