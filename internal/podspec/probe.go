// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// probes of a main or a sidecar.
func (s *scope) probes(c *corev1.Container, path *field.Path) errs {
	all := s.probe(c.LivenessProbe, path.Child("livenessProbe"))
	all = append(all, s.probe(c.ReadinessProbe, path.Child("readinessProbe"))...)
	all = append(all, s.probe(c.StartupProbe, path.Child("startupProbe"))...)
	// A container is not alive or started twice: only readiness can ask for more than one success.
	for _, p := range []struct {
		probe *corev1.Probe
		name  string
	}{{c.LivenessProbe, "livenessProbe"}, {c.StartupProbe, "startupProbe"}} {
		if p.probe != nil && p.probe.SuccessThreshold != 1 {
			all = append(all, field.Invalid(path.Child(p.name).Child("successThreshold"), p.probe.SuccessThreshold,
				"must be 1"))
		}
	}
	// A failed readiness probe kills nothing, so there is no grace to give.
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		all = append(all, field.Invalid(path.Child("readinessProbe").Child("terminationGracePeriodSeconds"),
			*p.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	return all
}

func (s *scope) probe(p *corev1.Probe, path *field.Path) errs {
	if p == nil {
		return nil
	}
	all := onlyHandler(path, []handler{
		{"exec", p.Exec != nil, func(at *field.Path) errs { return execAction(p.Exec, at) }},
		{"httpGet", p.HTTPGet != nil, func(at *field.Path) errs { return httpGet(p.HTTPGet, at) }},
		{"tcpSocket", p.TCPSocket != nil, func(at *field.Path) errs { return tcpSocket(p.TCPSocket, at) }},
		{"grpc", p.GRPC != nil, func(at *field.Path) errs { return grpcAction(p.GRPC, at) }},
	})
	for _, n := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds},
		{"timeoutSeconds", p.TimeoutSeconds},
		{"periodSeconds", p.PeriodSeconds},
		{"successThreshold", p.SuccessThreshold},
		{"failureThreshold", p.FailureThreshold},
	} {
		all = append(all, nonNegative(path.Child(n.name), n.value)...)
	}
	if g := p.TerminationGracePeriodSeconds; g != nil && *g <= 0 {
		all = append(all, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than 0"))
	}
	return all
}

// handler is one way to probe or to hook.
type handler struct {
	name  string
	set   bool
	check func(at *field.Path) errs
}

// onlyHandler: exactly one must be set.
func onlyHandler(path *field.Path, handlers []handler) (all errs) {
	n := 0
	for _, h := range handlers {
		if !h.set {
			continue
		}
		n++
		if n > 1 {
			all = append(all, field.Forbidden(path.Child(h.name), "may not specify more than 1 handler type"))
			continue
		}
		all = append(all, h.check(path.Child(h.name))...)
	}
	if n == 0 {
		all = append(all, field.Required(path, "must specify a handler type"))
	}
	return all
}

func execAction(e *corev1.ExecAction, path *field.Path) errs {
	if len(e.Command) == 0 {
		return errs{field.Required(path.Child("command"), "")}
	}
	return nil
}

// httpGet: the host is free text, it may be a name that only the node can resolve.
func httpGet(g *corev1.HTTPGetAction, path *field.Path) errs {
	all := required(path.Child("path"), g.Path)
	all = append(all, portNumberOrName(path.Child("port"), g.Port)...)
	all = append(all, oneOf(path.Child("scheme"), g.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	all = append(all, oneOfIfSet(path.Child("protocol"), g.Protocol, corev1.HTTPProtocolHTTP1,
		corev1.HTTPProtocolHTTP2)...)
	if g.Protocol != nil && *g.Protocol == corev1.HTTPProtocolHTTP2 {
		switch {
		case g.Scheme != corev1.URISchemeHTTP:
			all = append(all, field.Invalid(path.Child("protocol"), *g.Protocol,
				"HTTP2 is without TLS here; use scheme HTTP"))
		case g.Host != "":
			all = append(all, field.Invalid(path.Child("host"), g.Host, "must be empty with protocol HTTP2"))
		}
	}
	for i, h := range g.HTTPHeaders {
		all = append(all, valid(path.Child("httpHeaders").Index(i).Child("name"), h.Name,
			validation.IsHTTPHeaderName(h.Name))...)
	}
	return all
}

func tcpSocket(t *corev1.TCPSocketAction, path *field.Path) errs {
	return portNumberOrName(path.Child("port"), t.Port)
}

func grpcAction(g *corev1.GRPCAction, path *field.Path) errs {
	all := valid(path.Child("port"), g.Port, validation.IsValidPortNum(int(g.Port)))
	return append(all, oneOfIfSet(path.Child("mode"), g.Mode, corev1.GRPCProbeModePlaintext,
		corev1.GRPCProbeModeTLS)...)
}

func portNumberOrName(path *field.Path, port intstr.IntOrString) errs {
	switch port.Type {
	case intstr.Int:
		return valid(path, port.IntVal, validation.IsValidPortNum(int(port.IntVal)))
	case intstr.String:
		return valid(path, port.StrVal, validation.IsValidPortName(port.StrVal))
	default:
		return errs{field.Invalid(path, port.String(), "must be a number or a name")}
	}
}

// lifecycle: hooks and the stop signal of a main or a sidecar.
func (s *scope) lifecycle(l *corev1.Lifecycle, path *field.Path) (all errs) {
	if l == nil {
		return nil
	}
	if l.PostStart != nil {
		all = append(all, s.hook(l.PostStart, path.Child("postStart"))...)
	}
	if l.PreStop != nil {
		all = append(all, s.hook(l.PreStop, path.Child("preStop"))...)
	}
	if l.StopSignal == nil {
		return all
	}
	at := path.Child("stopSignal")
	switch {
	case s.spec.OS == nil || s.spec.OS.Name == "":
		all = append(all, field.Forbidden(at, "may not be set for containers with empty `spec.os.name`"))
	case s.spec.OS.Name == corev1.Windows:
		all = append(all, oneOf(at, *l.StopSignal, corev1.SIGTERM, corev1.SIGKILL)...)
	case !slices.Contains(linuxSignals(), *l.StopSignal):
		all = append(all, field.NotSupported(at, *l.StopSignal, linuxSignals()))
	}
	return all
}

func (s *scope) hook(h *corev1.LifecycleHandler, path *field.Path) errs {
	return onlyHandler(path, []handler{
		{"exec", h.Exec != nil, func(at *field.Path) errs { return execAction(h.Exec, at) }},
		{"httpGet", h.HTTPGet != nil, func(at *field.Path) errs { return httpGet(h.HTTPGet, at) }},
		{"tcpSocket", h.TCPSocket != nil, func(at *field.Path) errs { return tcpSocket(h.TCPSocket, at) }},
		{"sleep", h.Sleep != nil, func(at *field.Path) errs { return s.sleep(h.Sleep, at) }},
	})
}

// sleep must fit into the grace period, or it would be cut short every time.
func (s *scope) sleep(a *corev1.SleepAction, path *field.Path) errs {
	if a.Seconds < 0 || a.Seconds > s.grace {
		return errs{field.Invalid(path.Child("seconds"), a.Seconds,
			fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", s.grace))}
	}
	return nil
}

// linuxSignals are those the runtimes know by name; the real-time ones are counted from both ends.
func linuxSignals() []corev1.Signal {
	list := []corev1.Signal{
		corev1.SIGABRT, corev1.SIGALRM, corev1.SIGBUS, corev1.SIGCHLD, corev1.SIGCLD, corev1.SIGCONT, corev1.SIGFPE,
		corev1.SIGHUP, corev1.SIGILL, corev1.SIGINT, corev1.SIGIO, corev1.SIGIOT, corev1.SIGKILL, corev1.SIGPIPE,
		corev1.SIGPOLL, corev1.SIGPROF, corev1.SIGPWR, corev1.SIGQUIT, corev1.SIGSEGV, corev1.SIGSTKFLT, corev1.SIGSTOP,
		corev1.SIGSYS, corev1.SIGTERM, corev1.SIGTRAP, corev1.SIGTSTP, corev1.SIGTTIN, corev1.SIGTTOU, corev1.SIGURG,
		corev1.SIGUSR1, corev1.SIGUSR2, corev1.SIGVTALRM, corev1.SIGWINCH, corev1.SIGXCPU, corev1.SIGXFSZ,
		corev1.SIGRTMIN,
	}
	for n := 1; n <= 15; n++ {
		list = append(list, corev1.Signal(fmt.Sprintf("SIGRTMIN+%d", n)))
	}
	for n := 14; n >= 1; n-- {
		list = append(list, corev1.Signal(fmt.Sprintf("SIGRTMAX-%d", n)))
	}
	return append(list, corev1.SIGRTMAX)
}
