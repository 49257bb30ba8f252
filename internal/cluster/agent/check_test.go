// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
)

// An agent that is told too little, or too much, says so.
func TestParse(t *testing.T) {
	getenv := func(string) string { return "n1" }
	o, err := parse(nil, getenv, io.Discard)
	if err != nil || o.node != "n1" || o.listen != ":10770" || o.place.Here {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range []string{"x", "--cert a", "--cert a --key b", "--nosuch", "--node="} {
		if o, err := parse(strings.Fields(args), getenv, io.Discard); err == nil {
			t.Errorf("%q: %+v", args, o)
		}
	}
}

// An agent does not listen before it has a certificate: whoever looks whether it listens takes it for ready.
func TestListen(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := listen(ended, "127.0.0.1:0", make(chan struct{})); l != nil || err != nil {
		t.Errorf("without a certificate: %v, %v", l, err)
	}
	first := make(chan struct{})
	close(first)
	l, err := listen(t.Context(), "127.0.0.1:0", first)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// DA-07: where the cluster is, and whatever else the agent's pod is told, is nothing to a session's process.
func TestEnvironment(t *testing.T) {
	got := environment([]string{"KUBERNETES_SERVICE_HOST=10.0.0.1", "PATH=/evil", "LD_PRELOAD=x",
		"https_proxy=http://p", "NO_PROXY=a", "WHERRY_HANDED_OVER=x"})
	if len(got) != 4 || !slices.Contains(got, "https_proxy=http://p") || !slices.Contains(got, "NO_PROXY=a") {
		t.Errorf("%q", got)
	}
}

// DA-07: sessions are listed and stopped for the pod of this uid alone, and never those of the machine's own users.
func TestOfPod(t *testing.T) {
	pod := wire.Pod{Namespace: "shop", Name: "web", UID: "u1"}
	of := func(id, uid string) guard.Record {
		return guard.Record{ID: id, Pod: &guard.Pod{Namespace: "shop", Name: "web", UID: uid}}
	}
	all := []guard.Record{{ID: "own"}, of("a", "u1"), of("b", "u2"), of("c", "u1")}
	for id, want := range map[string]string{"": "ac", "a": "a", "b": "", "own": "", "none": ""} {
		got := ""
		for _, r := range ofPod(all, pod, id) {
			got += r.ID
		}
		if got != want {
			t.Errorf("%q: %q", id, got)
		}
	}
}

// DA-09: sessions are stopped at once, so that none waits for another that takes its time.
func TestStopAll(t *testing.T) {
	all := []guard.Record{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	var there sync.WaitGroup
	there.Add(len(all))
	within(t, "the stop of all", func() {
		err := stopAll(all, func(r guard.Record) error {
			there.Done()
			there.Wait()
			if r.ID == "b" {
				return errors.New("it stays")
			}
			return nil
		})
		if err == nil || err.Error() != "session b: it stays" {
			t.Errorf("%v", err)
		}
	})
}

// stubborn has sessions that do not end before end is closed.
type stubborn struct{ end chan struct{} }

func (stubborn) List(wire.Pod) ([]wire.Running, error) { return nil, nil }

func (s stubborn) Stop(wire.Stop) error {
	<-s.end
	return nil
}

// Who asks for the end of sessions that take their time is told so while he waits for the answer.
func TestStopIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := stubborn{make(chan struct{})}
		defer close(running.end)
		q, err := wire.Query(wire.Stop{Pod: wire.Pod{Namespace: "shop", Name: "web", UID: "u"}})
		if err != nil {
			t.Fatal(err)
		}
		w, began := httptest.NewRecorder(), time.Now()
		NewServer(nil, running, "").HTTP().Handler.ServeHTTP(w,
			httptest.NewRequest(http.MethodDelete, wire.PathSessions+"?"+q.Encode(), nil))
		if took := time.Since(began); w.Code != http.StatusGatewayTimeout || took != stopTime {
			t.Errorf("%d after %s: %s", w.Code, took, w.Body)
		}
	})
}

// The end of a session in the words of Kubernetes.
func TestEndStatus(t *testing.T) {
	for _, test := range []struct {
		ended  *talk.Ended
		reason string
		code   int
	}{{nil, "InternalError", 500}, {&talk.Ended{Error: "x"}, "InternalError", 500}, {&talk.Ended{}, "", 0},
		{&talk.Ended{Code: 3}, "NonZeroExitCode", 0}} {
		if got := endStatus(test.ended); got.Reason != test.reason || got.Code != test.code ||
			(got.Status == "Success") != (test.reason == "") {
			t.Errorf("%+v: %+v", test.ended, got)
		}
	}
}

// FuzzSession: what a request's query holds is refused, or is a session with a name that no path takes for more, a time
// limit and a pod with a uid.
func FuzzSession(f *testing.F) {
	f.Add(`{"pod":{"namespace":"a","name":"b","uid":"c"},"as":"shell","container":"x","seconds":5,"id":"0123456789ab","stdout":true}`)
	f.Add(`{"pod":{"namespace":"a","name":"b"},"cpus":1e999}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s wire.Session
		if wire.Parse(url.Values{"request": {text}}, &s) != nil || checkSession(s) != nil {
			return
		}
		if !guard.IsID(s.ID) || s.Seconds <= 0 || s.Pod.UID == "" {
			t.Errorf("%+v", s)
		}
	})
}
