// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"slices"
	"sync"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// turns stands before priority and fairness, which shares out free seats fairly but takes none back: requests that a
// user lets hang (a body that does not come, an answer that is not read) would keep all seats of a level until they
// time out. Here a user's requests wait for one another before they wait for a seat.
type turns struct {
	flowcontrol.Interface
	limit int // of one holder's requests that are served, or wait for a seat, at the same time

	mu    sync.Mutex
	lines map[string]*line
}

// line is one holder's requests. It is kept only while there are some.
type line struct {
	inside  int
	waiting []chan struct{} // closed when its turn has come, in order
}

// maxWaiting is how many requests of a holder wait for their turn; more are refused, as those beyond a queue of
// priority and fairness are.
const maxWaiting = 500

func newTurns(inner flowcontrol.Interface, limit int) flowcontrol.Interface {
	if limit == 0 {
		return inner
	}
	return &turns{Interface: inner, limit: limit, lines: map[string]*line{}}
}

// Handle implements flowcontrol.Interface. A request whose turn does not come while ctx lasts is not executed.
func (t *turns) Handle(ctx context.Context, request flowcontrol.RequestDigest,
	note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	work func() fcrequest.WorkEstimate, queued fq.QueueNoteFn, execute func(),
) {
	if !unlimited(request.User) {
		who := holder(request.User.GetName())
		if !t.wait(ctx, who, queued) {
			note(&flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: turnsName}},
				&flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: turnsName}}, who)
			return
		}
		defer t.leave(who)
	}
	t.Interface.Handle(ctx, request, note, work, queued, execute)
}

// turnsName stands in the request log where the name of a flow schema and of a priority level would.
const turnsName = "requests-of-one-user"

// wait waits for a turn.
func (t *turns) wait(ctx context.Context, who string, queued fq.QueueNoteFn) bool {
	t.mu.Lock()
	l := t.lines[who]
	if l == nil {
		l = &line{}
		t.lines[who] = l
	}
	if l.inside < t.limit {
		l.inside++
		t.mu.Unlock()
		return true
	}
	if len(l.waiting) >= maxWaiting {
		t.mu.Unlock()
		return false
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	t.mu.Unlock()
	queued(true)
	defer queued(false)
	select {
	case <-turn:
		return true
	case <-ctx.Done():
		return t.giveUp(who, turn)
	}
}

// giveUp leaves the line; true: the turn has come meanwhile.
func (t *turns) giveUp(who string, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[who] // there: it goes with the last turn, and this one has either not come or not ended
	if i := slices.Index(l.waiting, turn); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return false
	}
	return true
}

// leave ends a turn and gives it to the one that has waited longest.
func (t *turns) leave(who string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[who]
	if len(l.waiting) > 0 {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		return
	}
	if l.inside--; l.inside == 0 {
		delete(t.lines, who)
	}
}
