// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// What breaks in the middle of an image is an error of the reader, and no shorter archive; what Docker refuses is told
// in its own words. An image's name is a parameter, whatever is in it.
func TestDockerThatBreaks(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	const odd = "app:1&names=other"
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if name := req.URL.Query()["names"]; len(name) != 1 || name[0] != odd {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"message":"no such image: absent"}`)
			return
		}
		io.WriteString(w, strings.Repeat("x", 100_000))
		panic(http.ErrAbortHandler)
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	o := Options{Address: socket, Getenv: func(string) string { return "" }}
	archive, err := Source{"docker", odd}.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, archive); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after %d bytes: %v", n, err)
	}
	if err := archive.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := (Source{"docker", "absent"}).Open(t.Context(), o); err == nil ||
		!strings.Contains(err.Error(), "no such image: absent (docker image ls") {
		t.Errorf("refused with %v", err)
	}
}
