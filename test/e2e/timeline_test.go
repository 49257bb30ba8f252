// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/timeline"
)

// wherryTimeline runs `wherry timeline` in the space and returns its output and what it said on standard error.
func (s *Space) wherryTimeline(args ...string) (out, said string, code int) {
	s.T.Helper()
	cmd := s.Wherry(s.Context(), append([]string{"timeline", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace}, args...)...)
	cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8", "COLUMNS=120")
	text, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return string(text), string(failed.Stderr), failed.ExitCode()
	}
	if err != nil {
		s.T.Fatal(err)
	}
	return string(text), "", 0
}

// TestTimelineCommand: `wherry timeline` draws the life of a pod with an init, a sidecar that is probed and restarted, and a main:
// as text with a row for each, as JSON with every moment in it, as SVG and HTML; -w follows it to its end; and it is still there
// when the pod is gone (PL-15, SC-03, SC-05).
func TestTimelineCommand(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	pod := WithInit(st.Pod("life", st.Act("web")), st.Act("fetch", "-for", "50ms"), PreStop(Starting(Sidecar(st.Act("proxy", "-until", "-code", "4")), Healthy("proxy")), Tells("proxy", "pre")))
	s.Create(pod)
	st.AwaitUp(s.WaitReady("life"))
	st.Set("proxy", "go")
	st.Await("proxy", "end", 1)
	st.Clear("proxy", "go")
	s.WaitRestarts("life", "proxy", 1)
	pod = s.WaitReady("life")

	rows := []string{"init fetch", "sidecar proxy", "web"}
	t.Run("text", func(t *testing.T) {
		out, said, code := s.wherryTimeline("life")
		if code != 0 || said != "" {
			t.Fatalf("code %d: %s", code, said)
		}
		has(t, out, append(rows, "life")...)
		wide, _, _ := s.wherryTimeline("life", "-o", "wide")
		has(t, wide, append(rows, "exit")...)
	})
	t.Run("json", func(t *testing.T) {
		out, said, code := s.wherryTimeline("life", "-o", "json")
		var h timeline.History
		if err := json.Unmarshal([]byte(out), &h); err != nil || code != 0 {
			t.Fatalf("code %d, %v: %s%s", code, err, out, said)
		}
		if h.UID != string(pod.UID) || h.Name != "life" || len(h.Containers) != 3 {
			t.Errorf("it is the timeline of %+v", h.Pod)
		}
		for _, want := range []timeline.Moment{
			{What: timeline.Sandbox, Edge: timeline.Begin}, {What: timeline.Sandbox, Edge: timeline.End},
			{What: timeline.Exited, Container: "fetch"},
			{What: timeline.Running, Container: "proxy"}, {What: timeline.Started, Container: "proxy"},
			{What: timeline.Exited, Container: "proxy", Code: 4},
			{What: timeline.Start, Edge: timeline.Begin, Container: "proxy", Attempt: 1}, {What: timeline.Running, Container: "proxy", Attempt: 1},
			{What: timeline.Running, Container: "web"}, {What: timeline.Ready},
		} {
			if !slices.ContainsFunc(h.Moments, func(m timeline.Moment) bool {
				return m.What == want.What && m.Edge == want.Edge && m.Container == want.Container && m.Attempt == want.Attempt && m.Code == want.Code
			}) {
				t.Errorf("it has no moment %s %s of %s/%d with code %d:\n%s", want.What, want.Edge, want.Container, want.Attempt, want.Code, out)
			}
		}
	})
	for _, format := range []string{"svg", "html"} {
		t.Run(format, func(t *testing.T) {
			out, said, code := s.wherryTimeline("life", "-o", format)
			if code != 0 {
				t.Fatalf("code %d: %s", code, said)
			}
			has(t, out, append(rows, "<svg", "</svg>")...)
			if format == "svg" {
				wellFormed(t, out)
			}
		})
	}
	t.Run("wrong use", func(t *testing.T) {
		if _, said, code := s.wherryTimeline("life", "-o", "svg", "-w"); code != 2 || !strings.Contains(said, "cannot be combined") {
			t.Errorf("code %d: %s", code, said)
		}
		if _, said, code := s.wherryTimeline("nobody"); code != 1 || !strings.Contains(said, "nobody") {
			t.Errorf("code %d: %s", code, said)
		}
	})
	t.Run("followed to the end, and kept", func(t *testing.T) {
		follow := s.Wherry(s.Context(), "timeline", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "life", "-w", "-o", "json")
		out, err := follow.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := follow.Start(); err != nil {
			t.Fatal(err)
		}
		lines := json.NewDecoder(out)
		var h timeline.History
		if err := lines.Decode(&h); err != nil { // it listens: only now is there something to hear
			t.Fatal(err)
		}
		s.Delete("life")
		for err == nil {
			var part timeline.History
			if err = lines.Decode(&part); err == nil {
				h.Merge(part)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if err := follow.Wait(); err != nil || !h.Gone {
			t.Errorf("it ended with %v, the pod gone: %v", err, h.Gone)
		}
		s.WaitGone(pod)
		out2, said, code := s.wherryTimeline("life", "-o", "wide")
		if code != 0 {
			t.Fatalf("code %d: %s", code, said)
		}
		has(t, out2, append(rows, "preStop", "stop")...)
	})
}

func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q:\n%s", w, text)
		}
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("it is no XML: %v\n%s", err, text)
		}
	}
}
