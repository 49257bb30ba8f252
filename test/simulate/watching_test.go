// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// onlooker watches the ConfigMaps for ever, over the ends of servers, and holds what it sees to one history: every event newer than
// the one before, none of a thing that is not there, numbers that only grow.
type onlooker struct {
	w    *world
	seen map[string]int64 // numbers, by name
	at   uint64           // the version up to which it has seen everything
}

func (o *onlooker) look(ctx context.Context) {
	for ctx.Err() == nil {
		client, err := o.w.client(ctx)
		if err != nil {
			return
		}
		maps := client.CoreV1().ConfigMaps(space)
		if o.at == 0 {
			list, err := maps.List(ctx, metav1.ListOptions{})
			if err != nil {
				pause(ctx, time.Second)
				continue
			}
			o.listed(list)
		}
		// The time limit of the client would end the watch: it is only asked to end itself.
		w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatUint(o.at, 10), AllowWatchBookmarks: true, TimeoutSeconds: new(int64(20))})
		if err != nil {
			o.failed(err)
			pause(ctx, time.Second)
			continue
		}
		for e := range w.ResultChan() {
			o.event(e)
		}
		w.Stop()
	}
}

func (o *onlooker) failed(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		o.at = 0
	}
}

func (o *onlooker) listed(list *corev1.ConfigMapList) {
	version, _ := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if version < o.at {
		o.w.judge.fault("a list is of version %d, after %d was seen", version, o.at)
	}
	o.at = version
	now := map[string]int64{}
	for i := range list.Items {
		m := &list.Items[i]
		now[m.Name] = number(m)
		if now[m.Name] < o.seen[m.Name] {
			o.w.judge.fault("a list has %s at %d, after %d was seen", m.Name, now[m.Name], o.seen[m.Name])
		}
	}
	o.seen = now
}

func (o *onlooker) event(e watch.Event) {
	if e.Type == watch.Error {
		o.failed(apierrors.FromObject(e.Object))
		return
	}
	m, ok := e.Object.(*corev1.ConfigMap)
	if !ok {
		return
	}
	version, _ := strconv.ParseUint(m.ResourceVersion, 10, 64)
	if version < o.at || version == o.at && e.Type != watch.Bookmark {
		o.w.judge.fault("event %s of %s has version %d, after %d was seen", e.Type, m.Name, version, o.at)
	}
	o.at = version
	before, there := o.seen[m.Name]
	switch e.Type {
	case watch.Bookmark:
	case watch.Added:
		if there {
			o.w.judge.fault("%s was added, and was there already", m.Name)
		}
		o.seen[m.Name] = number(m)
	case watch.Modified:
		if !there {
			o.w.judge.fault("%s was changed, and was never there", m.Name)
		}
		if number(m) < before {
			o.w.judge.fault("%s went from %d to %d", m.Name, before, number(m))
		}
		o.seen[m.Name] = number(m)
	case watch.Deleted:
		delete(o.seen, m.Name)
	}
}

func number(m *corev1.ConfigMap) int64 {
	n, _ := strconv.ParseInt(m.Data["n"], 10, 64)
	return n
}
