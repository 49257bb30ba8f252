// SPDX-License-Identifier: Apache-2.0

package enginesocket

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func env(text string) func(string) string { return func(string) string { return text } }

// A socket that was asked for is tried alone, and only one of this machine.
func TestPaths(t *testing.T) {
	p := Place{"Docker", "V", []string{"/a", "/b"}}
	for name, c := range map[string]struct{ address, env, want, err string }{
		"usual":       {"", "", "/a /b", ""},
		"environment": {"", "unix:///e", "/e", ""},
		"flag":        {"/f", "unix:///e", "/f", ""},
		"remote":      {"", "tcp://h:1", "", "V is \"tcp://h:1\": only engines of this machine"},
		"ssh":         {"", "ssh://h", "", "V is \"ssh://h\": only engines of this machine"},
		"relative":    {"f.sock", "", "", "--address is \"f.sock\""},
	} {
		got, _, err := p.paths(c.address, env(c.env))
		if strings.Join(got, " ") != c.want || (err == nil) != (c.err == "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if first := DockerPlace(1000).Usual[0]; first != "/run/user/1000/docker.sock" {
		t.Errorf("a rootless one is looked for at %s", first)
	}
}

// Which socket is meant: the first that is there; one behind which nobody listens is not passed over. An engine that is
// nowhere is absent, unless somebody has said where it is.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	there, dead, none := filepath.Join(dir, "there"), filepath.Join(dir, "dead"), filepath.Join(dir, "none")
	l, err := net.Listen("unix", there)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: dead}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		usual     []string
		address   string
		want, err string
	}{
		"second":  {[]string{none, there}, "", there, ""},
		"dead":    {[]string{dead, there}, "", "", "does not listen at " + dead},
		"nowhere": {[]string{none, none + "2"}, "", "", "Docker is not here: there is no socket " + none + " nor " + none + "2 (--address or V"},
		"asked":   {[]string{there}, none, "", "there is no socket " + none + " (is it running?)"},
	} {
		got, err := Place{"Docker", "V", c.usual}.Find(t.Context(), c.address, env(""))
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if absent := (*Absent)(nil); errors.As(err, &absent) != (name == "nowhere") {
			t.Errorf("%s: absent: %v", name, err)
		}
	}
}

// What breaks in the middle of an answer is an error of the reader, and no shorter answer; what Docker refuses is told
// in its own words, with advice where something is not there. What is asked for is a parameter, whatever is in it.
func TestDocker(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	const odd = "app:1&names=other"
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch name := req.URL.Query().Get("names"); {
		case req.URL.EscapedPath() == "/containers/..%2Fa%20b/json":
			io.WriteString(w, "{}")
		case name == "broken":
			w.WriteHeader(http.StatusInternalServerError)
		case name != odd:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"message":"no such image: absent"}`)
		default:
			io.WriteString(w, strings.Repeat("x", 100_000))
			panic(http.ErrAbortHandler)
		}
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	d := Docker{Socket: socket, Within: time.Minute}
	get := func(name string) (io.ReadCloser, error) {
		return d.Get(t.Context(), "/images/get", url.Values{"names": {name}})
	}
	body, err := get(odd)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after %d bytes: %v", n, err)
	}
	if err := body.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	_, err = get("absent")
	if err = Advise(err, "look"); err == nil || err.Error() != "no such image: absent (look)" {
		t.Errorf("refused with %v", err)
	}
	_, err = get("broken")
	if err = Advise(err, "look"); err == nil || err.Error() != "500 Internal Server Error" {
		t.Errorf("refused with %v", err)
	}
	if body, err = d.Get(t.Context(), "/containers/"+url.PathEscape("../a b")+"/json", nil); err != nil {
		t.Fatal(err)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
}
