// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ledger writes objects all the time, and remembers which were acknowledged: those must be there in the end (SC-19).
type ledger struct {
	s      *storm
	client kubernetes.Interface
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	acked   []string
	refused int
	dead    time.Time       // when the server was killed; zero: it has served since
	back    []time.Duration // from each kill to the first write that was acknowledged after it
	found   int
}

func newLedger(s *storm) *ledger {
	config := rest.CopyConfig(s.Config)
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	l := &ledger{s: s, client: client, stop: cancel, done: make(chan struct{})}
	go l.write(ctx)
	return l
}

func (l *ledger) write(ctx context.Context) {
	defer close(l.done)
	entries := entryLabels()
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("entry-%d", i)
		_, err := l.client.CoreV1().ConfigMaps(l.s.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: entries}}, metav1.CreateOptions{})
		pause := 50 * time.Millisecond
		l.mu.Lock()
		if err != nil {
			l.refused++
			pause = 10 * time.Millisecond
		} else {
			l.acked = append(l.acked, name)
			if !l.dead.IsZero() {
				l.back, l.dead = append(l.back, time.Since(l.dead)), time.Time{}
			}
		}
		l.mu.Unlock()
		time.Sleep(pause) // the rest of the machine wants to live too
	}
}

func entryLabels() map[string]string { return map[string]string{"wherry.test/ledger": "entry"} }

// killed is called before the server is.
func (l *ledger) killed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = time.Now()
}

// close ends the writing and looks for what was acknowledged.
func (l *ledger) close() {
	l.stop()
	<-l.done
	list, err := l.s.Client.CoreV1().ConfigMaps(l.s.Namespace).List(l.s.Context(), metav1.ListOptions{})
	if err != nil {
		l.s.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, m := range list.Items {
		there[m.Name] = true
	}
	for _, name := range l.acked {
		if !there[name] {
			l.s.t.Errorf("SC-19 the write of %s was acknowledged, and is lost", name)
			continue
		}
		l.found++
	}
	// Thousands of objects make the namespace's end long.
	entries := entryLabels()
	if err := l.s.Client.CoreV1().ConfigMaps(l.s.Namespace).DeleteCollection(l.s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: labels.FormatLabels(entries)}); err != nil && !apierrors.IsNotFound(err) {
		l.s.t.Error(err)
	}
}

// String are its figures.
func (l *ledger) String() string {
	text := fmt.Sprintf("%d writes acknowledged, %d found again, %d refused", len(l.acked), l.found, l.refused)
	if n := len(l.back); n > 0 {
		slices.Sort(l.back)
		text += fmt.Sprintf("; kill to first write: median %s, longest %s", l.back[n/2].Round(time.Millisecond), l.back[n-1].Round(time.Millisecond))
	}
	return text
}
