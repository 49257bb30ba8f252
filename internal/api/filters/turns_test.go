// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"fmt"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// seats executes everything at once.
type seats struct{ flowcontrol.Interface }

func (seats) Handle(_ context.Context, _ flowcontrol.RequestDigest, _ func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	_ func() fcrequest.WorkEstimate, _ fq.QueueNoteFn, execute func()) {
	execute()
}

// RS-01: a user's requests wait for one another, in order, and for nobody else's; those that give up or are too many are not executed.
func TestTurns(t *testing.T) {
	turns := newTurns(seats{}, 2).(*turns)
	waiting, done := make(chan bool, maxWaiting), make(chan string, maxWaiting)
	run := func(ctx context.Context, who user.DefaultInfo, name string, execute func()) {
		executed, noted := false, false
		turns.Handle(ctx, flowcontrol.RequestDigest{User: &who},
			func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string) { noted = true }, nil,
			func(in bool) {
				if in {
					waiting <- true
				}
			}, func() { executed = true; execute() })
		switch {
		case executed:
			done <- name
		case noted: // the library names the level in its answer
			done <- name + " refused"
		}
	}
	jane, nothing := user.DefaultInfo{Name: "jane"}, func() {}
	var release [2]chan struct{}
	for i := range release {
		release[i] = make(chan struct{})
		begun := make(chan struct{})
		go run(t.Context(), jane, fmt.Sprint("hanging ", i), func() { close(begun); <-release[i] })
		<-begun
	}
	go run(t.Context(), jane, "next", nothing)
	<-waiting
	impatient, giveUp := context.WithCancel(t.Context())
	go run(impatient, jane, "impatient", nothing)
	<-waiting
	expect := func(want string) {
		t.Helper()
		if got := <-done; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	run(t.Context(), user.DefaultInfo{Name: "joe"}, "another", nothing)
	expect("another")
	run(t.Context(), user.DefaultInfo{Name: "jane", Groups: []string{user.SystemPrivilegedGroup}}, "administrator", nothing)
	expect("administrator")
	giveUp()
	expect("impatient refused")
	many, end := context.WithCancel(t.Context())
	for range maxWaiting - 1 {
		go run(many, jane, "crowd", nothing)
		<-waiting
	}
	run(t.Context(), jane, "one more", nothing)
	expect("one more refused")
	end()
	for range maxWaiting - 1 {
		expect("crowd refused")
	}
	close(release[0])
	got := map[string]bool{<-done: true, <-done: true}
	if !got["hanging 0"] || !got["next"] {
		t.Errorf("%v", got)
	}
	close(release[1])
	expect("hanging 1")
	turns.mu.Lock()
	defer turns.mu.Unlock()
	if len(turns.lines) > 0 {
		t.Errorf("lines are kept: %v", turns.lines)
	}
}

// RS-01: whoever may edit a namespace can make any number of service accounts in it, which gives them no more turns.
func TestHolder(t *testing.T) {
	for name, want := range map[string]string{
		"jane": "jane", "system:serviceaccount:a:one": "system:serviceaccount:a", "system:serviceaccount:a:two": "system:serviceaccount:a",
		"system:serviceaccount:b:one": "system:serviceaccount:b",
	} {
		if got := holder(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
