// SPDX-License-Identifier: Apache-2.0

package systemlogs

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestParse proves PL-36: what makes no sense is refused in the kubelet's words, and nothing that is asked becomes an
// option of journalctl but as its value.
func TestParse(t *testing.T) {
	for query, want := range map[string]string{
		"":                     "query: Required value: cannot be empty with options",
		"query=":               "may not be empty",
		"query=%20":            "may not be empty",
		"query=a/b&query=c":    "cannot specify a file and service",
		"query=a/b&query=c/d":  "cannot specify more than one file",
		"query=/a&tailLines=1": "cannot specify file with options",
		"query=a;b":            "unsupported",
		"query=a%20b":          "input contains unsupported characters",
		"query=a&query=b&query=c&query=d&query=e":                               "must have at most 4 items",
		"query=a&sinceTime=today":                                               "invalid time format",
		"query=a&sinceTime=2030-01-02T00:00:00Z&untilTime=2030-01-01T00:00:00Z": "must be after `sinceTime`",
		"query=a&boot=1":       "must be less than 1",
		"query=a&boot=x":       "invalid syntax",
		"query=a&tailLines=-1": "must be between 0 and 100000, inclusive",
		"query=a&pattern=(":    "missing closing )",
		"tailLines=1":          "cannot be empty with options",
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			continue // net/http refuses it
		}
		if _, errs := Parse(v); len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), want) {
			t.Errorf("%q: %v, want %q", query, errs, want)
		}
	}
	v, _ := url.ParseQuery("query=kubelet&query=-x&sinceTime=2030-01-01T01:00:00%2B01:00&untilTime=2030-01-02T00:00:00Z&tailLines=5&boot=-1&pattern=--a")
	q, errs := Parse(v)
	want := "--utc --no-pager --output=short-precise --since=2030-1-1 00:0:0 --until=2030-1-2 00:0:0 --pager-end --lines=5 --unit=kubelet --unit=-x --grep=--a --boot=-1"
	if got := strings.Join(q.arguments(q.Services), " "); got != want || len(errs) > 0 {
		t.Errorf("%s\n%v", got, errs)
	}
}

// TestServe proves PL-36: services from the journal or from files, a file or a folder by its path, nothing outside.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "log")
	write := func(name, text string, mode os.FileMode) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("secret", "s3cret", 0o600)
	write("log/one.log", "first file", 0o600)
	write("log/two/two.log", "second file", 0o600)
	if err := os.Symlink("../secret", filepath.Join(logs, "out.log")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(logs, "pipe.log"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("journalctl", "#!/bin/sh\ncase \"$1\" in --field=*) echo kubelet.service; echo cron.service;; *) echo journal: $@; echo oops >&2; exit 1;; esac\n", 0o755)
	with, without := Handler{logs, filepath.Join(dir, "journalctl")}, Handler{logs, filepath.Join(dir, "none")}
	for _, c := range []struct {
		h        Handler
		query    string
		code     int
		has, not string
	}{
		{with, "query=kubelet&tailLines=3", 200, "--lines=3 --unit=kubelet\noops", "log not found"},
		{with, "query=kubelet&query=one", 200, "first file", "not found"},
		{with, "query=kube", 200, "log not found for kube", "journal:"},
		{without, "query=kubelet", 200, "log not found for kubelet", ""},
		{without, "query=two", 200, "second file", ""},
		{without, "query=two&boot=0", 200, "try without specifying options", "second file"},
		{without, "query=/one.log", 200, "first file", ""},
		{without, "query=/", 200, "two/", "secret"},
		{without, "query=/none", 404, "", ""},
		{without, "query=../secret", 404, "", "s3cret"},
		{without, "query=/out.log", 500, "", "s3cret"},
		{without, "query=out", 200, "error getting log for out", "s3cret"},
		{without, "query=pipe", 200, "log not found for pipe", ""},
		{without, "query=/pipe.log", 404, "", ""},
		{without, "query=", 400, "may not be empty", ""},
	} {
		w := httptest.NewRecorder()
		c.h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/logs/?"+c.query, nil))
		if body := w.Body.String(); w.Code != c.code || !strings.Contains(body, c.has) || c.not != "" && strings.Contains(body, c.not) {
			t.Errorf("%s: %d %q", c.query, w.Code, body)
		}
	}
}

// TestFiles proves PL-36: where nothing is asked the path is that of a file or folder, and nothing outside is shown, nor
// what would have the reader wait.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "log")
	if err := os.MkdirAll(filepath.Join(logs, "apt"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(dir, "secret"): "s3cret",
		filepath.Join(logs, "apt", "history.log"): "installed"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(logs, "out.log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(logs, "far.log")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(logs, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := http.StripPrefix("/logs/", Handler{logs, "none"})
	for _, c := range []struct {
		path string
		code int
		has  string
	}{
		{"/logs/", 200, "apt/"}, {"/logs/apt/", 200, "history.log"}, {"/logs/apt", 301, ""},
		{"/logs/apt/history.log", 200, "installed"}, {"/logs/none", 404, ""}, {"/logs/pipe", 404, ""},
		{"/logs/out.log", 500, ""}, {"/logs/far.log", 500, ""}, {"/logs/../secret", 404, ""},
		{"/logs/%2e%2e/secret", 404, ""}, {"/logs/..%2fsecret", 404, ""}, {"/logs/%2fetc%2fpasswd", 404, ""},
	} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		if body := w.Body.String(); w.Code != c.code || !strings.Contains(body, c.has) || strings.Contains(body, "s3cret") {
			t.Errorf("%s: %d %q", c.path, w.Code, body)
		}
	}
}

// due notes until when what is written to it has to be read.
type due struct {
	*httptest.ResponseRecorder
	at time.Time
}

// SetWriteDeadline is for http.ResponseController.
func (d *due) SetWriteDeadline(at time.Time) error {
	d.at = at
	return nil
}

// TestWhoDoesNotRead proves PL-36: an answer ends, whether it is read or not.
func TestWhoDoesNotRead(t *testing.T) {
	w := &due{ResponseRecorder: httptest.NewRecorder()}
	Handler{t.TempDir(), "none"}.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/logs/?query=/", nil))
	if left := time.Until(w.at); left <= 0 || left > longest {
		t.Errorf("it may take until %v", w.at)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"query=a&tailLines=1", "query=%00&boot=-1", "query=/a/../b", "pattern=(?i)x&query=a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := url.ParseQuery(s)
		if err != nil {
			return
		}
		q, errs := Parse(v)
		if len(errs) > 0 {
			return
		}
		for _, arg := range q.arguments(q.Services) {
			if !strings.HasPrefix(arg, "--") {
				t.Errorf("%q is no option", arg)
			}
		}
	})
}
