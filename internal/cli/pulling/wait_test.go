// SPDX-License-Identifier: Apache-2.0

package pulling

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

func event(version, path, reason, message string) (e Event) {
	e.Metadata.ResourceVersion, e.InvolvedObject.FieldPath, e.Reason, e.Message = version, path, reason, message
	return e
}

// IX-02: only a pull of the container that is waited for, and one that has not ended, is under way.
func TestUnderWay(t *testing.T) {
	const debug, main = "spec.ephemeralContainers{debug}", "spec.containers{main}"
	pulling := event("9", debug, "Pulling", "Pulling image x")
	for name, c := range map[string]struct {
		events []Event
		want   string
	}{
		"none":              {nil, ""},
		"pulling":           {[]Event{pulling}, "Pulling image x"},
		"another's":         {[]Event{event("9", main, "Pulling", "Pulling image y")}, ""},
		"over":              {[]Event{event("10", debug, "Pulled", "done"), pulling}, ""},
		"failed":            {[]Event{pulling, event("10", debug, "Failed", "no")}, ""},
		"again":             {[]Event{event("10", debug, "Pulling", "Pulling image z"), event("8", debug, "Failed", "no"), pulling}, "Pulling image z"},
		"another's is over": {[]Event{pulling, event("10", main, "Pulled", "done")}, "Pulling image x"},
		"something else":    {[]Event{pulling, event("10", debug, "DebugContainerAdded", "by ann")}, "Pulling image x"},
		"without versions":  {[]Event{event("", debug, "Pulling", "Pulling image x"), event("", debug, "Pulled", "done")}, ""},
	} {
		if got := UnderWay(c.events, "debug"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// DC-03, IX-01: sessions that need an image are waited for by the name that events have for it.
func TestContainer(t *testing.T) {
	for query, want := range map[string]string{
		"command=true&container=main":                               "",
		"image=i&container=main":                                    "exec",
		"ephemeralContainerName=debug-2&ephemeralContainerImage=i":  "debug-2",
		"ephemeralContainerUnlessDead=true&command=ls&stdout=true":  "",
		"ephemeralContainerName=debug&ephemeralContainerTarget=web": "debug",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := Container(q); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// A pull is shown with how much of it has arrived, as far as that can be known, and taken away at the end.
func TestFollow(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Path + " " + r.URL.Query().Get("fieldSelector"); got != "/base/api/v1/namespaces/work/events involvedObject.kind=Pod,involvedObject.name=web" {
			t.Errorf("asked for %s", got)
		}
		_, _ = io.WriteString(w, `{"items":[{"metadata":{"resourceVersion":"7"},"involvedObject":{"fieldPath":"spec.containers{exec}"},"reason":"Pulling","message":"Pulling image i"}]}`)
	}))
	defer api.Close()
	base, err := url.Parse(api.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "host.sock")
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	host := serveOn(l, `[{"ref":"a","bytes":1048576,"total":4194304}]`)
	defer host.Close()
	for name, c := range map[string]struct {
		node Ask
		want string
	}{
		"all":        {Node(path), "Pulling image i|1.0 of 4.0 MiB, 0.0 MiB/s, 0 of 1 layers"},
		"no socket":  {nil, "Pulling image i|"},
		"not root":   {Node(filepath.Join(t.TempDir(), "none")), "Pulling image i|"},
		"cannot say": {func(context.Context) ([]Transfer, error) { return nil, errors.New("an external runtime") }, "Pulling image i|"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var shown []string
			Wait{Container: "exec", Events: Events(api.Client(), base, "work", "web"), Node: c.node, Show: func(what, how string) {
				shown = append(shown, what+"|"+how)
				cancel()
			}}.Follow(ctx)
			if len(shown) != 2 || shown[0] != c.want || shown[1] != "|" {
				t.Errorf("shown %q, want %q", shown, c.want)
			}
		})
	}
}

func serveOn(l net.Listener, answer string) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	s.Listener = l
	s.Start()
	return s
}

// Whoever may not read events is shown nothing, and asks once.
func TestFollowWithoutRights(t *testing.T) {
	asked := 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		http.Error(w, "forbidden", http.StatusForbidden)
	}))
	defer api.Close()
	base, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	Wait{Container: "exec", Events: Events(api.Client(), base, "work", "web"), Show: func(what, how string) {
		if what+how != "" {
			t.Errorf("shown %q, %q", what, how)
		}
	}}.Follow(t.Context())
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// A terminal has one line that goes away and obeys nothing of what a name says; a file has each pull on a line.
func TestShow(t *testing.T) {
	steps := func(show func(what, how string)) {
		show("", "")
		show("Pulling \x1b]0;x\aimage", "")
		show("Pulling \x1b]0;x\aimage", "1 of 2")
		show("", "")
		show("", "")
	}
	var tty, file, raw bytes.Buffer
	steps(onTerminal(&tty, 60))
	if got := tty.String(); strings.Count(got, "\r\x1b[K") != 3 || strings.Count(got, "\x1b") != 3 || !strings.HasSuffix(got, ": 1 of 2\r\x1b[K") {
		t.Errorf("on a terminal: %q", got)
	}
	steps(To(&file, false))
	if got := file.String(); strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") || !strings.HasSuffix(got, "image\n") {
		t.Errorf("in a file: %q", got)
	}
	steps(To(&raw, true))
	if got := raw.String(); !strings.HasSuffix(got, "image\r\n") {
		t.Errorf("beside a terminal in raw mode: %q", got)
	}
}
