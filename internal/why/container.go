// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// forgiven is how long a container must have run before its crashes count as over: so long does Kubernetes remember
// them for its back-off.
const forgiven = 10 * time.Minute

// container is about one container of the pod.
func (r *report) container(ref podspec.ContainerRef) {
	s := podspec.FindStatus(&r.Pod.Status, ref.Container.Name)
	if s == nil {
		return
	}
	last := s.LastTerminationState.Terminated
	switch state := s.State; {
	case state.Waiting != nil:
		r.waiting(ref, s)
	case state.Terminated != nil:
		if r.unwanted(ref, state.Terminated) {
			r.crashed(ref, s, state.Terminated, "state.terminated")
		}
	case state.Running != nil:
		if last != nil && r.unwanted(ref, last) && ref.Kind != podspec.Init {
			f := r.crashed(ref, s, last, "lastState.terminated")
			f.Past = s.Ready && r.Now.Sub(state.Running.StartedAt.Time) > forgiven
			f.fact(statusOf(s)+".restartCount", "%s; it runs again since %s", restarts(s.RestartCount),
				state.Running.StartedAt.UTC().Format(time.RFC3339))
			if kind, _ := r.probeEnded(ref, last); kind != "" && kind == failing(ref, s) {
				return // the same probe as before
			}
		}
		r.probes(ref, s)
	}
}

func statusOf(s *corev1.ContainerStatus) string { return "status of " + s.Name }

// unwanted reports whether an end of a container is not as it should be.
func (r *report) unwanted(ref podspec.ContainerRef, t *corev1.ContainerStateTerminated) bool {
	if t.ExitCode != 0 {
		return r.Pod.DeletionTimestamp == nil
	}
	policy := r.Pod.Spec.RestartPolicy
	if p := ref.Container.RestartPolicy; p != nil {
		policy = corev1.RestartPolicy(*p)
	}
	return ref.Kind != podspec.Init && policy == corev1.RestartPolicyAlways && r.Pod.DeletionTimestamp == nil
}

// waiting is about a container that waits for something.
func (r *report) waiting(ref podspec.ContainerRef, s *corev1.ContainerStatus) {
	w := s.State.Waiting
	from := statusOf(s) + ", waiting: " + w.Reason
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed":
		r.image(ref, w, from)
	case "CreateContainerConfigError":
		r.configuration(ref, w, from)
	case "CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun":
		r.add(r.box(ref, Log{}).Start(r.wordsOf(ref, w), from))
	default:
		if t := s.LastTerminationState.Terminated; t != nil && r.unwanted(ref, t) {
			f := r.crashed(ref, s, t, "lastState.terminated")
			if w.Reason == "CrashLoopBackOff" {
				f.fact(from, "%s; %s", restarts(s.RestartCount), backOff(w.Message))
			}
			return
		}
		if w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			f := r.add(&Finding{Where: label(ref), What: "it waits: " + join(": ", w.Reason, w.Message)})
			f.fact(from, "%s", join(": ", w.Reason, w.Message))
			f.try("look at its events: kubectl describe pod %s", r.Pod.Name)
		}
	}
}

// backOff shortens what a node says of a pause.
func backOff(words string) string {
	if before, _, ok := strings.Cut(words, " restarting failed container"); ok {
		return before + " before the next one"
	}
	return words
}

// wordsOf is why a container waits; where its status has no words those of the event.
func (r *report) wordsOf(ref podspec.ContainerRef, w *corev1.ContainerStateWaiting) string {
	if e := r.latest(ref.Container.Name, "Failed"); e != nil && len(e.Message) > len(w.Message) {
		return strings.TrimPrefix(e.Message, "Error: ")
	}
	return w.Message
}

// configuration is about a container whose configuration cannot be made.
func (r *report) configuration(ref podspec.ContainerRef, w *corev1.ContainerStateWaiting, from string) {
	message := w.Message
	for _, f := range r.findings {
		if (strings.HasSuffix(f.Where, label(ref)) || strings.HasPrefix(f.Where, "volume ")) && !f.Past &&
			strings.Contains(f.What, " ") {
			f.fact(from, "%s", message) // the missing object is the cause
			return
		}
	}
	f := r.add(&Finding{Where: label(ref)})
	f.fact(from, "%s", message)
	switch {
	case strings.Contains(message, "runAsNonRoot") && strings.Contains(message, "non-numeric"):
		f.What = "it must not run as root (runAsNonRoot), and the image names its user by name, not by a numeric UID"
		f.try("set securityContext.runAsUser to the number of that user")
	case strings.Contains(message, "runAsNonRoot"):
		f.What = "it must not run as root (runAsNonRoot), and its image runs as root"
		f.try("set securityContext.runAsUser to a number above 0, if the program works as another user")
		f.try("or use an image with a USER, which is a number")
		r.nonRoot(ref, f)
	case strings.Contains(message, "couldn't find key"):
		f.What = "a ConfigMap or Secret has no such key"
		f.try("add the key, or correct its name")
	case strings.Contains(message, "not found"):
		f.What = "something that it refers to does not exist"
		f.try("create it, or correct its name; the pod continues by itself when it exists")
	default:
		f.What = "its configuration cannot be made"
		f.try("read the words above")
	}
}

// nonRoot says where it is demanded, and who runs it.
func (r *report) nonRoot(ref podspec.ContainerRef, f *Finding) {
	if c := ref.Container.SecurityContext; c != nil && c.RunAsNonRoot != nil {
		f.fact(ref.Path().Child("securityContext").String(), "runAsNonRoot: %t", *c.RunAsNonRoot)
	} else if c := r.Pod.Spec.SecurityContext; c != nil && c.RunAsNonRoot != nil {
		f.fact("spec.securityContext", "runAsNonRoot: %t", *c.RunAsNonRoot)
	}
	f.fact("spec", "image %s, and no runAsUser is given", ref.Container.Image)
}

// box is what is known of a container without its pod.
func (r *report) box(ref podspec.ContainerRef, log Log) Box {
	c := ref.Container
	b := Box{Label: label(ref), Image: c.Image, Command: append(slices.Clone(c.Command), c.Args...),
		MemoryUsed: r.Usage[c.Name], Tail: log.Lines, LogFrom: logFrom(log)}
	if q, ok := c.Resources.Limits[corev1.ResourceMemory]; ok {
		b.MemoryLimit, b.LimitField = q.String(), ref.Path().Child("resources", "limits").String()
	} else if pr := r.Pod.Spec.Resources; pr != nil {
		if q, ok := pr.Limits[corev1.ResourceMemory]; ok {
			b.MemoryLimit, b.LimitField = q.String()+" of the pod", "spec.resources.limits"
		}
	}
	if s := c.SecurityContext; s != nil && s.ReadOnlyRootFilesystem != nil {
		b.ReadOnlyRoot = *s.ReadOnlyRootFilesystem
	}
	return b
}

func logFrom(l Log) string {
	if l.Previous {
		return "log of " + l.Container + ", previous run"
	}
	return "log of " + l.Container
}

// log is the one that was fetched of a container, and is shown with the answer.
func (r *report) log(container string) Log {
	for _, l := range r.Logs {
		if l.Container == container {
			return l
		}
	}
	return Log{Container: container}
}

// show has a log shown.
func (r *report) show(l Log) {
	if len(l.Lines) > 0 && !slices.ContainsFunc(r.logs, func(o Log) bool { return o.Container == l.Container }) {
		l.Lines = slices.Clone(l.Lines)
		r.logs = append(r.logs, l)
	}
}

// crashed is about a container that has ended though it should not.
func (r *report) crashed(ref podspec.ContainerRef, s *corev1.ContainerStatus, t *corev1.ContainerStateTerminated,
	field string) *Finding {
	log := r.log(ref.Container.Name)
	r.show(log)
	from := statusOf(s) + ", " + field
	if kind, by := r.probeEnded(ref, t); kind != "" {
		if f := r.probe(ref, s, kind); f != nil {
			f.What = "its " + kind + " probe fails, so it is ended and begun again: " + f.What
			if by != nil {
				f.fact(eventFrom(by), "%s", by.Message)
			}
			f.fact(from, "exit code %d; %s", t.ExitCode, restarts(s.RestartCount))
			return f
		}
	}
	box := r.box(ref, log)
	box.Kills = r.kills(t.ContainerID)
	f := r.add(box.End(Ended{Code: t.ExitCode, Signal: t.Signal, OOM: t.Reason == "OOMKilled",
		Reason: t.Reason, Words: t.Message, Began: t.StartedAt.Time, At: t.FinishedAt.Time, From: from}))
	r.servants(f, log)
	if ref.Kind == podspec.Init {
		f.fact("status of the pod", "the containers after it wait until it has ended with success")
	}
	if r.Usage == nil && t.Reason == "OOMKilled" && s.State.Running != nil {
		f.fact("metrics", "how much it uses at the moment is not known")
	}
	r.media(f, t)
	return f
}

// kills are those of a container's processes for want of memory. Its ID has the runtime's name before it.
func (r *report) kills(id string) (of []Kill) {
	_, id, _ = strings.Cut(id, "://")
	for _, k := range r.Facts.Kills {
		if k.Container == id {
			of = append(of, k)
		}
	}
	return of
}

// remembered is for how long an event about a probe speaks for ends that have none: a node drops events that it has
// reported too often.
const remembered = 15 * time.Minute

// probeEnded reports whether a container was ended since a probe failed: by the event that says so, or, if it was
// killed, by a failure of the probe.
func (r *report) probeEnded(ref podspec.ContainerRef, t *corev1.ContainerStateTerminated) (string, *corev1.Event) {
	begins, ends := t.StartedAt.Add(-time.Second), t.FinishedAt.Add(2*time.Second)
	if e := r.latest(ref.Container.Name, "Killing"); e != nil && !lastOf(e).After(ends) {
		for _, kind := range []string{"liveness", "startup"} {
			if strings.Contains(e.Message, "failed "+kind+" probe") && lastOf(e).After(begins) {
				return kind, e
			}
		}
	}
	if n := signalOf(t.ExitCode); n != 9 && n != 15 || t.Reason == "OOMKilled" {
		return "", nil
	}
	for _, kind := range []string{"liveness", "startup"} {
		if e := r.unhealthy(ref.Container.Name, kind); e != nil && lastOf(e).After(t.FinishedAt.Add(-remembered)) {
			return kind, nil
		}
	}
	return "", nil
}

// media is about volumes in memory, which count for the limit.
func (r *report) media(f *Finding, t *corev1.ContainerStateTerminated) {
	if t.Reason != "OOMKilled" {
		return
	}
	for i := range r.Pod.Spec.Volumes {
		if e := r.Pod.Spec.Volumes[i].EmptyDir; e != nil && e.Medium == corev1.StorageMediumMemory {
			f.fact("spec.volumes", "volume %s is in memory (medium: Memory), and what is in it counts",
				r.Pod.Spec.Volumes[i].Name)
		}
	}
}

// servants is about those whom a container could not reach, as its log says.
func (r *report) servants(f *Finding, log Log) {
	for _, s := range ReadLog(log.Lines) {
		switch s.Topic {
		case NoName:
			if s.Object != "" {
				f.Try = slices.DeleteFunc(f.Try,
					func(t string) bool { return strings.HasPrefix(t, "correct the name;") })
				r.suggest(f, s.Object)
			}
		case Refused, TimedOut:
			r.servant(f, s)
		}
	}
}

// servant says what is known of the Service that a line of a log is about.
func (r *report) servant(f *Finding, said Said) {
	for i := range r.Services {
		s := &r.Services[i]
		if said.Object != "" && !slices.Contains(s.IPs, said.Object) {
			continue
		}
		if said.Object == "" && !mentions(said.Line, s.Name) {
			continue
		}
		from := "service " + s.Name
		if said.Object != "" {
			f.fact(from, "%s is Service %s", said.Object, s.Name)
		}
		switch {
		case !s.Known:
		case s.Ready == 0 && len(s.Selector) > 0 && s.Chosen == 0:
			f.What += fmt.Sprintf("; that is Service %s, whose selector fits no pod", s.Name)
			f.fact(from+", spec.selector", "%s fits no pod in namespace %s", selectorWords(s.Selector), s.Namespace)
			f.Try = []string{"correct the selector of Service " + s.Name +
				", or the labels of the pods it is for: kubectl get pods --show-labels"}
		case s.Ready == 0:
			f.What += fmt.Sprintf("; that is Service %s, of which no pod is ready", s.Name)
			f.fact(from, "%d endpoints are not ready, none is; its selector fits %d pods", s.Unready, s.Chosen)
			f.Try = []string{"find out why its pods are not ready: kubectl get pods -l " + selectorWords(s.Selector)}
		case said.Port != "" && !hasPort(s, said.Port):
			f.What += fmt.Sprintf("; Service %s has no such port", s.Name)
			f.fact(from+", spec.ports", "%s", portWords(s))
			f.Try = []string{"ask at a port that the Service has"}
		default:
			f.fact(from, "%d endpoints are ready; ports %s", s.Ready, portWords(s))
			f.try("look whether targetPort of Service %s is where its pods listen", s.Name)
		}
		return
	}
}

// mentions reports whether a line has a name as a word.
func mentions(line, name string) bool {
	return slices.Contains(strings.FieldsFunc(line, func(c rune) bool {
		return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}), name)
}

func hasPort(s *Service, port string) bool {
	return slices.ContainsFunc(s.Ports, func(p corev1.ServicePort) bool { return fmt.Sprint(p.Port) == port })
}

func portWords(s *Service) string {
	var all []string
	for _, p := range s.Ports {
		text := fmt.Sprint(p.Port)
		if target := p.TargetPort.String(); target != "0" && target != text {
			text += "→" + target
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func selectorWords(selector map[string]string) string {
	var all []string
	for k, v := range selector {
		all = append(all, k+"="+v)
	}
	slices.SortFunc(all, cmp.Compare)
	return strings.Join(all, ",")
}
