// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

func TestContainerLogs(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		path   string
		status int
		body   string
	}{
		{"/containerLogs/default/web/main", 200, "out of /logs/main\nerr of /logs/main\n"},
		{"/containerLogs/default/web/debug", 200, "out of /logs/debug\nerr of /logs/debug\n"}, // EC-14
		{"/containerLogs/default/web/main?stream=Stdout", 200, "out of /logs/main\n"},
		{"/containerLogs/default/web/main?stream=Stderr", 200, "err of /logs/main\n"},
		{"/containerLogs/default/web/main?previous=true", 200, "out of /logs.previous\nerr of /logs.previous\n"},
		{"/containerLogs/default/web/nope", 404, "container not found (\"nope\"): pod \"web\" has no such container\n"},
		{"/containerLogs/default/none/main", 404, "pod \"none\" does not exist in namespace \"default\" on this node\n"},
		{"/containerLogs/default/web/main?tailLines=-1", 400, "tailLines: must be 0 or more\n"},
	} {
		if status, body := w.get(w.masters, tc.path); status != tc.status || body != tc.body {
			t.Errorf("PL-09 %s: %d %q, want %d %q", tc.path, status, body, tc.status, tc.body)
		}
	}
	w.host.logPath = "/missing"
	w.host.containers["main"] = ""
	if status, body := w.get(w.masters, "/containerLogs/default/web/main?previous=1"); status != 200 || !strings.HasPrefix(body, "out of /missing.previous") {
		t.Errorf("PL-09 --previous: %d %q", status, body)
	}
}

func TestLogThatIsNotThere(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Logs = func(context.Context, string, *corev1.PodLogOptions, func() bool, io.Writer, io.Writer) (int64, error) {
			return 0, errors.New("file is gone")
		}
	})
	if status, body := w.get(w.masters, "/containerLogs/default/web/main"); status != 400 || !strings.Contains(body, "file is gone") {
		t.Errorf("%d %q", status, body)
	}
	w.host.logErr = errors.New("never started")
	for path, want := range map[string]string{
		"main?previous=true": `previous terminated container "main" in pod "web" not found`,
		"waiting":            `container "waiting" in pod "web" is waiting to start: ContainerCreating`,
		"debug":              `container "debug" in pod "web" is not available: never started`,
		"main":               `container "main" in pod "web" has no log: never started`,
	} {
		if status, body := w.get(w.masters, "/containerLogs/default/web/"+path); status != 400 || strings.TrimSpace(body) != want {
			t.Errorf("PL-09 %s: %d %q, want 400 %q", path, status, body, want)
		}
	}
}

func TestWhyNoLogImages(t *testing.T) {
	for reason, want := range map[string]string{"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image", "": "no logs yet"} {
		pod := testPod()
		pod.Status.ContainerStatuses[1].State.Waiting.Reason = reason
		if err := whyNoLog(pod, "waiting", false, io.EOF); !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", reason, err, want)
		}
	}
}

// Followed lines arrive as they are written, before the log ends, and it ends with the container.
func TestFollow(t *testing.T) {
	next := make(chan string)
	w := newWorld(t, func(c *Config) {
		c.Logs = func(ctx context.Context, _ string, o *corev1.PodLogOptions, running func() bool, out, _ io.Writer) (int64, error) {
			if !o.Follow || !running() {
				return 0, errors.New("not following a running container")
			}
			for {
				select {
				case line := <-next:
					if _, err := io.WriteString(out, line); err != nil {
						return 0, err
					}
				case <-ctx.Done():
					return 0, ctx.Err()
				case <-time.After(10 * time.Millisecond):
					if !running() {
						return 0, nil
					}
				}
			}
		}
	})
	body := w.open("/containerLogs/default/web/main?follow=true") // answered though nothing is written yet
	lines := bufio.NewReader(body)
	for _, line := range []string{"one\n", "two\n"} {
		next <- line
		if got, err := lines.ReadString('\n'); err != nil || got != line {
			t.Fatalf("PL-09 follow: %q, %v", got, err)
		}
	}
	if err := w.fake.Exit(w.host.containers["main"], 0); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
		t.Errorf("PL-09 follow: %q, %v", rest, err)
	}
	// And Close ends it too (the reader of debug's log waits for its container).
	body = w.open("/containerLogs/default/web/debug?follow=true")
	if err := w.server.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	_, _ = io.ReadAll(body)
}

// open gives the body of a GET as it comes.
func (w *world) open(path string) io.Reader {
	w.t.Helper()
	tlsConfig, err := rest.TLSConfigFor(w.masters)
	if err != nil {
		w.t.Fatal(err)
	}
	tr := &http.Transport{TLSClientConfig: tlsConfig}
	w.t.Cleanup(tr.CloseIdleConnections)
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "https://"+w.addr+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("GET %s: %s", path, resp.Status)
	}
	return resp.Body
}

func TestParseLogOptions(t *testing.T) {
	q := func(s string) url.Values { v, _ := url.ParseQuery(s); return v }
	o, err := parseLogOptions(q("follow=true&previous=1&timestamps=true&sinceSeconds=5&tailLines=0&limitBytes=7&other=x&stream=All"))
	if err != nil || !o.Follow || !o.Previous || !o.Timestamps || *o.SinceSeconds != 5 || *o.TailLines != 0 || *o.LimitBytes != 7 || *o.Stream != "All" {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = parseLogOptions(q("sinceTime=2026-11-20T10:00:00Z"))
	if err != nil || o.SinceTime.UTC().Hour() != 10 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []string{
		"follow=perhaps", "sinceSeconds=0", "sinceSeconds=x", "tailLines=-1", "limitBytes=0", "sinceTime=yesterday",
		"sinceTime=2026-11-20T10:00:00Z&sinceSeconds=1", "stream=Stdin", "stream=Stdout&tailLines=1",
	} {
		if o, err := parseLogOptions(q(bad)); err == nil {
			t.Errorf("%s was accepted: %+v", bad, o)
		}
	}
}

func TestParsePorts(t *testing.T) {
	if got, err := parsePorts(url.Values{"port": {"80,81", "82"}}); err != nil || len(got) != 3 || got[2] != 82 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "0", "65536", "-1", "80,", "http"} {
		if got, err := parsePorts(url.Values{"port": {bad}}); err == nil {
			t.Errorf("%q was accepted: %v", bad, got)
		}
	}
}

// FuzzParams feeds every query parser.
func FuzzParams(f *testing.F) {
	f.Add("follow=true&tailLines=1&sinceTime=2026-11-20T10:00:00Z&stream=Stderr")
	f.Add("port=1,2&port=3&tty=1&input=1")
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		if o, err := parseLogOptions(q); err == nil {
			if o.TailLines != nil && *o.TailLines < 0 || o.SinceSeconds != nil && (*o.SinceSeconds < 1 || o.SinceTime != nil) || o.LimitBytes != nil && *o.LimitBytes < 1 {
				t.Errorf("%q: %+v", query, o)
			}
		}
		if ports, err := parsePorts(q); err == nil {
			for _, p := range ports {
				if p < 1 || p > 65535 {
					t.Errorf("%q: %v", query, ports)
				}
			}
		}
		if s, err := parseStreams(q); err == nil && (s.TTY && s.Stderr || !s.Stdin && !s.Stdout && !s.Stderr) {
			t.Errorf("%q: %+v", query, s)
		}
	})
}
