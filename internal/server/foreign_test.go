// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// RS-08: a purge that waits for a container runtime which does not answer says so, and ends when it is told to.
func TestPurgeSaysWhatItWaitsFor(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "silent.sock")
	silent, err := net.Listen("unix", socket) // connections are made, and nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := os.WriteFile(endpointFile(dir), []byte("unix://"+socket+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "pods", "a-pod"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []string
	err = endForeign(ctx, dir, PurgeOptions{Tell: func(what string) {
		told = append(told, what)
		cancel()
	}})
	if err == nil || !strings.Contains(err.Error(), "--runtime-gone") {
		t.Errorf("it ended with %v", err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "waiting for the container runtime at unix://"+socket+" to end this folder's pods") {
		t.Errorf("told: %q", told)
	}
}
