// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	internal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/wherryproject/wherry/internal/audit/trail"
)

func refusal(from string) *internal.Event {
	ev := numbered(0)
	ev.Verb, ev.SourceIPs = "list", []string{from}
	ev.RequestURI, ev.UserAgent = "/api/v1/pods?x="+strings.Repeat("x", 7000), strings.Repeat("y", 7000)
	ev.ResponseStatus = &metav1.Status{Code: 401, Reason: "Unauthorized"}
	return ev
}

// read returns what a log holds, as people read it.
func read(t *testing.T, path string) (entries []trail.Entry) {
	t.Helper()
	files, err := trail.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trail.Read(files, trail.Filter{}, func(e trail.Event) error {
		if len(e.Line) > 4<<10 && strings.Contains(path, "refused") {
			t.Errorf("%d bytes of what a stranger sent", len(e.Line))
		}
		entries = append(entries, trail.Say(&e.Event))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestStrangersAreSummed (RS-04): what clients without an identity are refused is counted, in a log of its own; whatever they send, what
// others did stays where it is.
// ATTACK B8.
func TestStrangersAreSummed(t *testing.T) {
	dir := t.TempDir()
	o := Defaults()
	o.Log.MaxSize, o.Log.MaxBackups = 1, 1
	r, err := Open(o, dir)
	if err != nil {
		t.Fatal(err)
	}
	kept := numbered(1)
	kept.User.Username, kept.ResponseStatus = "jane", &metav1.Status{Code: 201}
	if !r.Backend.ProcessEvents(kept) {
		t.Fatal("not recorded")
	}
	for i := range 4000 { // 56 MB as they came
		if !r.Backend.ProcessEvents(refusal(fmt.Sprint("10.0.0.", i%3))) {
			t.Fatal("not recorded")
		}
	}
	for i := range 1000 { // from anywhere
		r.Backend.ProcessEvents(refusal(fmt.Sprint("10.1.0.", i)))
	}
	r.Backend.Shutdown()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, DefaultPath(dir)); len(got) != 1 || got[0].User != "jane" {
		t.Errorf("the log holds %v", got)
	}
	got := read(t, trail.Refused(DefaultPath(dir)))
	if len(got) > 3*sumKinds {
		t.Errorf("%d lines", len(got))
	}
	told := 0
	for _, e := range got {
		n := 1
		if _, count, ok := strings.Cut(e.Result, "×"); ok {
			if _, err := fmt.Sscan(count, &n); err != nil {
				t.Fatal(err)
			}
		}
		told += n
		if !strings.HasPrefix(e.Result, "401 Unauthorized") || e.User != "(nobody)" {
			t.Errorf("%+v", e)
		}
	}
	if told != 5000 {
		t.Errorf("%d refusals are told of 5000", told)
	}
}

// TestSharesOfTheLog (RS-04): a user who writes without end pushes out nothing that others did; nor do a namespace's service accounts, of
// which there may be any number.
// ATTACK B8.
func TestSharesOfTheLog(t *testing.T) {
	dir := t.TempDir()
	o := Defaults()
	o.Log.MaxSize, o.Log.MaxBackups, o.Log.Compress = 1, 20, false // nothing is removed or made of it beside the test
	r, err := Open(o, dir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(user string) {
		ev := numbered(1)
		ev.User.Username, ev.ResponseStatus = user, &metav1.Status{Code: 201}
		if user != "jane" {
			ev.UserAgent = strings.Repeat("x", 8000)
		}
		if !r.Backend.ProcessEvents(ev) {
			t.Fatal("not recorded")
		}
	}
	write("jane")
	for i := range 1000 {
		write("eve")
		write(fmt.Sprint("system:serviceaccount:a:", i))
	}
	write("jane")
	r.Backend.Shutdown()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range read(t, DefaultPath(dir)) {
		user, _, _ := strings.Cut(e.User, ":a:")
		count[user]++
	}
	if count["jane"] != 2 || count["eve"] == 0 || count["eve"] > 100 || count["system:serviceaccount"] == 0 || count["system:serviceaccount"] > 100 {
		t.Errorf("in the log: %v", count)
	}
	if _, err := os.Stat(filepath.Join(dir, "audit", "audit-busy-1.log")); err != nil {
		t.Error(err)
	}
}

// TestShareComesBack (RS-04): who was over their share gets it again with time.
func TestShareComesBack(t *testing.T) {
	now := time.Unix(0, 0)
	f := newFair(nil, nil, LogOptions{MaxSize: 50, MaxBackups: 20})
	f.now = func() time.Time { return now }
	for f.within("eve", 1<<20) {
	}
	if now = now.Add(time.Second); f.within("eve", 1<<20) || !f.within("jane", 1<<20) {
		t.Error("a second later eve may write a MiB, or jane may not")
	}
	if now = now.Add(2 * time.Minute); !f.within("eve", 1<<20) {
		t.Error("not within two minutes")
	}
	now = now.Add(24 * time.Hour)
	f.within("jane", 1)
	if _, there := f.shares["eve"]; there {
		t.Error("eve is remembered, though all of the share is back")
	}
}
