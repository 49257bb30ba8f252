// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/record"
)

const (
	// writeTime is how long an event may take to be written.
	writeTime = 10 * time.Second
	// maxCommand bounds a command in an event, in bytes.
	maxCommand = 100
)

// events says at a pod who debugs it. That is for those who look at the pod: what nobody may get around is in the audit
// log.
type events struct {
	client kubernetes.Interface
	log    *slog.Logger
}

// reported is a session whose start was recorded as an event.
type reported struct {
	events  *events
	pod     *corev1.Pod
	session wire.Session
	since   time.Time
	begun   chan struct{} // closed when the first event was written or could not be
}

// started says that a session has started; nobody waits for it.
func (e *events) started(pod *corev1.Pod, s wire.Session) *reported {
	t := &reported{events: e, pod: pod, session: s, since: time.Now(), begun: make(chan struct{})}
	go func() {
		defer close(t.begun)
		e.write(pod, "started", wire.EventStarted, wire.NotedOf(s), fmt.Sprintf("%s started %s", s.By, described(s)))
	}()
	return t
}

// ended says how a session has ended.
func (t *reported) ended(end record.End) {
	<-t.begun
	note := wire.NotedOf(t.session)
	note.ExitCode = end.ExitCode
	if end.ExitCode == nil {
		note.Why = howEnded(end)
	}
	t.events.write(t.pod, "ended", wire.EventEnded, note, endWords(t.session, end, time.Since(t.since)))
}

// endWords are those of the event that a session has ended.
func endWords(s wire.Session, end record.End, took time.Duration) string {
	return fmt.Sprintf("%s of %s ended after %v: %s", described(s), s.By, took.Round(time.Second), howEnded(end))
}

// howEnded is how a session ended, in a few words.
func howEnded(end record.End) string {
	switch {
	case end.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *end.ExitCode)
	case end.Message != "":
		return cut(end.Message)
	case end.Reason != "":
		return end.Reason
	}
	return "its client or its connection has gone"
}

// described is a session in a few words.
func described(s wire.Session) string {
	parts := []string{fmt.Sprintf("debug session %s (%s", s.ID, s.As)}
	if s.Container != "" {
		parts = append(parts, "container "+s.Container)
	}
	if s.Image != "" {
		parts = append(parts, "image "+s.Image)
	}
	if s.Profile != "" {
		parts = append(parts, "profile "+s.Profile)
	}
	if s.Writable {
		parts = append(parts, "writable")
	}
	if len(s.Command) > 0 {
		parts = append(parts, "command "+cut(strings.Join(s.Command, " ")))
	}
	return strings.Join(parts, ", ") + ")"
}

// cut bounds words that somebody else has chosen.
func cut(text string) string {
	if len(text) <= maxCommand {
		return text
	}
	return strings.ToValidUTF8(text[:maxCommand], "") + "…"
}

func (e *events) write(pod *corev1.Pod, suffix, reason string, note wire.Noted, message string) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	if _, err := e.client.CoreV1().Events(pod.Namespace).Create(ctx,
		event(pod, suffix, reason, note, message, metav1.Now()), metav1.CreateOptions{}); err != nil {
		e.log.Warn("an event about a session cannot be written", "pod", pod.Namespace+"/"+pod.Name, "event", reason,
			"session", note.ID, "err", err)
	}
}

// event is one of a pod.
func event(pod *corev1.Pod, suffix, reason string, note wire.Noted, message string,
	now metav1.Time) *corev1.Event {
	path := ""
	if note.Container != "" {
		path = fmt.Sprintf("spec.containers{%s}", note.Container)
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: eventName(pod.Name, note.ID, suffix), Namespace: pod.Namespace,
			Annotations: map[string]string{wire.AnnotationNoted: note.Text()}},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name,
			UID: pod.UID, ResourceVersion: pod.ResourceVersion, FieldPath: path},
		Reason: reason, Message: message, Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now,
		LastTimestamp: now, Source: corev1.EventSource{Component: wire.APIName}, ReportingController: wire.APIName,
	}
}

// maxPodInName bounds the pod's part in an event's name, in bytes: a pod may have as long a name as an event.
const maxPodInName = 200

func eventName(pod, id, suffix string) string {
	return strings.TrimRight(pod[:min(len(pod), maxPodInName)], "-.") + "." + id + "." + suffix
}
