// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"testing"
)

// FreePort finds a port of the machine that nobody uses, on both protocols.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
