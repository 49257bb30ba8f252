// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"

	"github.com/wherryproject/wherry/internal/api/podstore"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

// taint is what the condition Tainted says: who entered the pod last, how and when (IX-08). What was run there is in
// the record, the event and the audit log: whoever may see a pod sees its conditions, and a command may hold a secret.
// The message is for people, and nothing is read back from it: who added which debug container is in
// podspec.AddedAnnotation, when the condition was written last in its lastProbeTime.
type taint struct {
	reason string
	what   string // before the time
}

func execTaint(user, container string) taint {
	return taint{debugrun.TaintedByExec, fmt.Sprintf("exec by %s into %s", user, container)}
}

func imageTaint(user, container string) taint {
	t := taint{debugrun.TaintedByImageExec, "image exec by " + user}
	if container != "" {
		t.what += " beside " + container
	}
	return t
}

// MarkAdded writes down in a pod that somebody has added a debug container.
func MarkAdded(pod *corev1.Pod, user, container string, now time.Time) error {
	t := taint{debugrun.TaintedByDebugContainer, fmt.Sprintf("debug container %s by %s", container, user)}
	t.put(&pod.Status, pod.Generation, now)
	at := metav1.NewTime(now.UTC().Truncate(time.Second))
	return podspec.NoteDebugAddition(pod, container, podspec.DebugAddition{By: user, At: at})
}

// message is what a person reads in the condition.
func (t taint) message(at time.Time) string { return t.what + " at " + at.UTC().Format(time.RFC3339) }

// put writes the condition into a status.
func (t taint) put(s *corev1.PodStatus, generation int64, now time.Time) {
	podstore.SetCondition(s, corev1.PodCondition{
		Type: debugrun.Tainted, Status: corev1.ConditionTrue, Reason: t.reason, ObservedGeneration: generation,
		Message: t.message(now), LastProbeTime: metav1.NewTime(now),
	})
}

// taintEvery is how often the same thing done by the same user is written again: a condition is not a log.
const taintEvery = time.Minute

// fresh reports whether a condition says the same already, with a time that is good enough.
func (t taint) fresh(c *corev1.PodCondition, now time.Time) bool {
	at := c.LastProbeTime.Time // none in one that an earlier version wrote
	return c.Message == t.message(at) && now.Sub(at) < taintEvery
}

// taint marks a pod before somebody enters it. The first time it is stored before this returns; later ones are stored
// beside the request, since the pod is known to be tainted already.
func (r *Recorder) taint(ctx context.Context, pod *corev1.Pod, t taint) error {
	now := time.Now()
	had := podstore.TaintOf(pod)
	if had != nil && t.fresh(had, now) {
		return nil
	}
	write := func(ctx context.Context) error {
		uid := pod.UID
		return podstore.Update(r.pods.Within(ctx, pod.Namespace), r.pods.Store, pod.Name,
			&storage.Preconditions{UID: &uid}, false, func(p *corev1.Pod) error {
				t.put(&p.Status, p.Generation, now)
				return nil
			})
	}
	if had != nil {
		r.Beside(ctx, "condition of pod "+pod.Namespace+"/"+pod.Name, write)
		return nil
	}
	return write(ctx)
}

// Entered puts on record that somebody is about to enter a container by exec (IX-08).
func (r *Recorder) Entered(ctx context.Context, pod *corev1.Pod, container string) error {
	return r.taint(ctx, pod, execTaint(UserName(ctx), container))
}
