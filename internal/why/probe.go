// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wherryproject/wherry/internal/podspec"
)

// failing is the kind of probe that keeps a running container from being ready; empty if none does.
func failing(ref podspec.ContainerRef, s *corev1.ContainerStatus) string {
	switch c := ref.Container; {
	case s.Started != nil && !*s.Started && c.StartupProbe != nil:
		return "startup"
	case !s.Ready && c.ReadinessProbe != nil && ref.Kind != podspec.Init:
		return "readiness"
	}
	return ""
}

// probes is about the probes of a container that runs.
func (r *report) probes(ref podspec.ContainerRef, s *corev1.ContainerStatus) {
	kind := failing(ref, s)
	if kind == "" {
		return
	}
	f := r.probe(ref, s, kind)
	if f == nil {
		if r.silent(ref, s, kind) {
			r.show(r.log(ref.Container.Name))
		}
		return
	}
	what := "it is not ready, since its readiness probe fails: "
	if kind == "startup" {
		what = "its startup probe has not passed yet: "
	}
	f.What = what + f.What
	log := r.log(ref.Container.Name)
	r.show(log)
	r.box(ref, log).heard(f, "; its log says: ")
	r.servants(f, log)
	if ref.Kind == podspec.Sidecar && kind == "startup" {
		f.fact("status of the pod", "the containers after it wait until it has started")
	}
}

// patience is how long a probe may take to pass before that is reported, though no event says what it answers.
const patience = time.Minute

// silent is about a probe that does not pass, and of which there is no event.
func (r *report) silent(ref podspec.ContainerRef, s *corev1.ContainerStatus, kind string) bool {
	p := ref.Container.ReadinessProbe
	if kind == "startup" {
		p = ref.Container.StartupProbe
	}
	since := s.State.Running.StartedAt.Time
	if r.Now.Sub(since) < patience+time.Duration(p.InitialDelaySeconds)*time.Second {
		return false
	}
	f := r.add(&Finding{Where: label(ref),
		What: fmt.Sprintf("its %s probe has not passed, and no event tells what it answers", kind)})
	f.fact(statusOf(s), "it runs since %s, and is not ready", since.UTC().Format(time.RFC3339))
	f.fact(ref.Path().Child(kind+"Probe").String(), "%s", probeWords(p))
	f.try("do as the probe does, by hand, and read the program's log")
	return true
}

// probe is about a probe's last answer; nil if there is no event of one.
func (r *report) probe(ref podspec.ContainerRef, s *corev1.ContainerStatus, kind string) *Finding {
	last := r.unhealthy(ref.Container.Name, kind)
	if last == nil {
		return nil
	}
	p := map[string]*corev1.Probe{"startup": ref.Container.StartupProbe, "readiness": ref.Container.ReadinessProbe,
		"liveness": ref.Container.LivenessProbe}[kind]
	_, answer, _ := strings.Cut(last.Message, ": ")
	f := r.add(&Finding{Where: label(ref)})
	f.fact(eventFrom(last), "%s", last.Message)
	if p != nil {
		f.fact(ref.Path().Child(kind+"Probe").String(), "%s, every %d s, waits %d s for an answer, %d failures count",
			probeWords(p), max(p.PeriodSeconds, 1), max(p.TimeoutSeconds, 1), max(p.FailureThreshold, 1))
	}
	r.answered(f, ref, p, answer, kind)
	return f
}

// unhealthy is the last event about failures of one kind of probe of a container.
func (r *report) unhealthy(container, kind string) (last *corev1.Event) {
	name := strings.ToUpper(kind[:1]) + kind[1:]
	for i := range r.Events {
		e := &r.Events[i]
		if (e.Reason == "Unhealthy" || e.Reason == "ProbeWarning" || e.Reason == "ProbeError") &&
			containerOf(e) == container && strings.HasPrefix(e.Message, name+" probe ") &&
			(last == nil || !lastOf(e).Before(lastOf(last))) {
			last = e
		}
	}
	return last
}

// answered explains the last answer of a probe.
func (r *report) answered(f *Finding, ref podspec.ContainerRef, p *corev1.Probe, answer, kind string) {
	has := func(words string) bool { return strings.Contains(strings.ToLower(answer), words) }
	port := portOf(ref.Container, p)
	_, code, http := strings.Cut(answer, "statuscode: ")
	code, _, _ = strings.Cut(code, " ")
	switch {
	case http && code == "404":
		f.What = "the program answers, and has no such path (HTTP 404)"
		f.try("correct httpGet.path of the probe, or have the program serve it")
	case http && strings.HasPrefix(code, "5"):
		f.What = fmt.Sprintf("the program answers that it is not well (HTTP %s)", code)
		f.try("ask it yourself and read the answer and its log: kubectl port-forward %s %s", r.Pod.Name, port)
	case http && (code == "401" || code == "403"):
		f.What = fmt.Sprintf("the program answers the probe only with a login (HTTP %s)", code)
		f.try("probe a path that needs no login, or set httpGet.httpHeaders")
	case http:
		f.What = fmt.Sprintf("the program answers with HTTP %s, which counts as failure", code)
		f.try("correct scheme and path of the probe, or have the program answer with 200 to 399")
	case has("connection refused"):
		f.What = fmt.Sprintf("nobody listens at port %s of the pod (connection refused)", port)
		f.try("correct the probe's port, or have the program listen there and on all addresses (0.0.0.0, not 127.0.0.1)")
		r.ports(f, ref)
	case has("http response to https client"), has("malformed http response"):
		f.What = "the probe and the program do not agree on HTTP or HTTPS"
		f.try("correct httpGet.scheme of the probe")
	case has("executable file not found"), has("no such file or directory") && has("exec:"):
		f.What = "the probe's command does not exist in the image"
		f.try("correct exec.command of the probe, or probe with httpGet or tcpSocket, which need no program in the image")
	case has("deadline exceeded"), has("timed out"), has("timeout"):
		f.What = fmt.Sprintf("no answer comes within the probe's time (timeoutSeconds: %d)", timeoutOf(p))
		f.try("raise timeoutSeconds, or find out what keeps the program from answering (CPU limit, a lock, a slow database)")
	case p != nil && p.Exec != nil:
		f.What = "its command fails: " + answer
		f.try("run it yourself: kubectl exec %s -c %s -- %s", r.Pod.Name, ref.Container.Name,
			strings.Join(p.Exec.Command, " "))
	default:
		f.What = "its last answer was: " + answer
	}
	if kind == "liveness" {
		f.try("a program that needs long to begin wants a startupProbe; a liveness probe only ends what cannot help itself")
	}
}

// ports says where a container says that it listens.
func (r *report) ports(f *Finding, ref podspec.ContainerRef) {
	var all []string
	for _, p := range ref.Container.Ports {
		all = append(all, fmt.Sprintf("%d", p.ContainerPort))
	}
	if len(all) > 0 {
		f.fact(ref.Path().Child("ports").String(), "%s", strings.Join(all, ", "))
	}
	if len(ref.Container.Command)+len(ref.Container.Args) > 0 {
		r.box(ref, Log{}).command(f)
	}
}

// probeWords is what a probe does.
func probeWords(p *corev1.Probe) string {
	switch {
	case p.HTTPGet != nil:
		return fmt.Sprintf("GET %s at port %s", p.HTTPGet.Path, p.HTTPGet.Port.String())
	case p.TCPSocket != nil:
		return fmt.Sprintf("connects to port %s", p.TCPSocket.Port.String())
	case p.GRPC != nil:
		return fmt.Sprintf("gRPC at port %d", p.GRPC.Port)
	case p.Exec != nil:
		return "runs " + strings.Join(p.Exec.Command, " ")
	}
	return "does nothing"
}

// portOf is the port that a probe asks at, a name resolved.
func portOf(c *corev1.Container, p *corev1.Probe) string {
	var port intstr.IntOrString
	switch {
	case p == nil:
		return "of the probe"
	case p.HTTPGet != nil:
		port = p.HTTPGet.Port
	case p.TCPSocket != nil:
		port = p.TCPSocket.Port
	case p.GRPC != nil:
		return fmt.Sprint(p.GRPC.Port)
	}
	for _, own := range c.Ports {
		if port.Type == intstr.String && own.Name == port.StrVal {
			return fmt.Sprint(own.ContainerPort)
		}
	}
	return port.String()
}

func timeoutOf(p *corev1.Probe) int32 {
	if p == nil {
		return 1
	}
	return max(p.TimeoutSeconds, 1)
}
