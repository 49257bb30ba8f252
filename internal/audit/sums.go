// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	internal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/wherryproject/wherry/internal/audit/trail"
)

const (
	sumEvery = time.Minute
	sumKinds = 64  // in one period: a client may come from any number of addresses
	maxProbe = 512 // bytes of a text that somebody without an identity chose
)

// refusedStranger reports whether a request was refused to somebody who showed no identity: anybody may send as many of
// these as they like.
func refusedStranger(ev *internal.Event) bool {
	if ev.ResponseStatus == nil || ev.User.Username != "" && ev.User.Username != user.Anonymous {
		return false
	}
	return ev.ResponseStatus.Code == http.StatusUnauthorized || ev.ResponseStatus.Code == http.StatusForbidden
}

// brief bounds what a stranger wrote into an event.
func brief(in *internal.Event) *internal.Event {
	ev := *in
	ev.RequestURI, ev.UserAgent = shorten(ev.RequestURI, maxProbe), shorten(ev.UserAgent, maxProbe/4)
	if n := len(ev.SourceIPs); n > 2 {
		ev.SourceIPs = []string{ev.SourceIPs[0], ev.SourceIPs[n-1]}
	}
	ev.SourceIPs = slices.Clone(ev.SourceIPs)
	for i, text := range ev.SourceIPs {
		ev.SourceIPs[i] = shorten(text, maxID)
	}
	if ref := ev.ObjectRef; ref != nil {
		short := *ref
		for _, text := range []*string{&short.Resource, &short.Namespace, &short.Name, &short.APIGroup,
			&short.APIVersion, &short.ResourceVersion, &short.Subresource} {
			*text = shorten(*text, maxID)
		}
		ev.ObjectRef = &short
	}
	ev.Verb = shorten(ev.Verb, maxID)
	if s := ev.ResponseStatus; s != nil {
		ev.ResponseStatus = &metav1.Status{Status: s.Status, Code: s.Code, Reason: s.Reason,
			Message: shorten(s.Message, maxProbe)}
	}
	ev.Annotations = nil
	return &ev
}

// kind is what is counted together.
type kind struct {
	from, verb string
	code       int32
}

// sums counts refusals: the first of a kind is put on record as it is, the others as one event at the end of the
// period.
type sums struct {
	sink  func(...*internal.Event) bool
	after func(time.Duration, func()) *time.Timer

	mu     sync.Mutex
	kinds  map[kind]*internal.Event // nil value: the first one was it
	counts map[kind]int
	timer  *time.Timer
}

func newSums(sink func(...*internal.Event) bool) *sums {
	return &sums{sink: sink, after: time.AfterFunc, kinds: map[kind]*internal.Event{}, counts: map[kind]int{}}
}

func (s *sums) add(in *internal.Event) bool {
	ev := brief(in)
	k := kind{verb: ev.Verb, code: ev.ResponseStatus.Code}
	if n := len(ev.SourceIPs); n > 0 {
		k.from = ev.SourceIPs[n-1] // the one that was seen here
	}
	s.mu.Lock()
	if _, known := s.kinds[k]; !known && len(s.kinds) >= sumKinds {
		k = kind{code: k.code} // from anywhere
		ev.SourceIPs = nil
	}
	first, known := s.kinds[k]
	switch {
	case !known:
		s.kinds[k] = nil
	case first == nil:
		s.kinds[k], s.counts[k] = ev, 1
	default:
		s.counts[k]++
		first.StageTimestamp = ev.StageTimestamp
	}
	if s.timer == nil {
		s.timer = s.after(sumEvery, s.flush)
	}
	s.mu.Unlock()
	return known || s.sink(ev)
}

// flush puts the sums on record and begins a new period.
func (s *sums) flush() {
	s.mu.Lock()
	kinds, counts := s.kinds, s.counts
	s.kinds, s.counts = map[kind]*internal.Event{}, map[kind]int{}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.mu.Unlock()
	for k, ev := range maps.All(kinds) {
		if ev != nil {
			ev.Annotations = map[string]string{trail.Count: strconv.Itoa(counts[k])}
			s.sink(ev)
		}
	}
}

// owner is whose share a user's records are charged to. Service accounts, which who may edit a namespace can make
// without end, have one share for each namespace.
func owner(name string) string {
	if rest, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		return "system:serviceaccount:" + namespace
	}
	return name
}
