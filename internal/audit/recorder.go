// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	internal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/audit/buffered"
	"k8s.io/apiserver/plugin/pkg/audit/truncate"
	pluginwebhook "k8s.io/apiserver/plugin/pkg/audit/webhook"
)

// Recorder is what an API server's handlers need to put requests on record. Both fields are nil if nothing is to be
// recorded.
type Recorder struct {
	Backend audit.Backend
	Policy  audit.PolicyRuleEvaluator

	files []io.Closer
}

// Open reads the policy and opens the log. What it refuses names the flag, the file, and the line where there is one.
func Open(o Options, dataDir string) (_ *Recorder, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Recorder{}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	guard := guard{}
	if o.PolicyFile != "" {
		p, err := readPolicy(o.PolicyFile)
		if err != nil {
			return nil, err
		}
		r.Policy = policy.NewPolicyRuleEvaluator(p)
	} else {
		if r.Policy, guard.quiet, err = builtinPolicy(); err != nil {
			return nil, err
		}
	}
	var all, refused []audit.Backend
	log, strangers, err := r.openLog(o.Log, dataDir)
	if err != nil {
		return nil, fmt.Errorf("--audit-log-path: %w", err)
	}
	if log != nil {
		all, refused = append(all, log), append(refused, strangers)
	}
	if o.Webhook.ConfigFile != "" {
		hook, err := pluginwebhook.NewBackend(o.Webhook.ConfigFile, auditv1.SchemeGroupVersion,
			webhook.DefaultRetryBackoffWithInitialDelay(o.Webhook.InitialBackoff), nil)
		if err != nil {
			return nil, fmt.Errorf("--audit-webhook-config-file %s: %w", o.Webhook.ConfigFile, err)
		}
		wrapped := parting{o.Webhook.wrap(hook), partingTime}
		all, refused = append(all, wrapped), append(refused, wrapped)
	}
	if len(all) == 0 {
		return &Recorder{}, nil
	}
	guard.Backend = audit.Union(all...)
	if log != nil && strangers != log {
		guard.apart = strangers
	}
	guard.refused = newSums(audit.Union(refused...).ProcessEvents)
	r.Backend = guard
	return r, nil
}

// Close closes the log, after the backend was shut down.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// builtinPolicy is the policy without a file, and the one that decides what of it is kept only if it was refused.
func builtinPolicy() (all, kept audit.PolicyRuleEvaluator, err error) {
	p, err := decodePolicy(builtin)
	if err != nil {
		return nil, nil, fmt.Errorf("built-in audit policy: %w", err)
	}
	q, err := decodePolicy(quiet)
	if err != nil {
		return nil, nil, fmt.Errorf("built-in audit policy: %w", err)
	}
	return policy.NewPolicyRuleEvaluator(p), policy.NewPolicyRuleEvaluator(q), nil
}

func (s Sending) wrap(b audit.Backend) audit.Backend {
	switch s.Mode {
	case Batch:
		b = buffered.NewBackend(b, s.Batch)
	case Blocking:
		b = lenient{b}
	}
	if s.Truncate {
		b = truncate.NewBackend(b, s.Limits, auditv1.SchemeGroupVersion)
	}
	return b
}

// lenient lets requests go on that could not be recorded. The library has logged and counted it.
type lenient struct{ audit.Backend }

// ProcessEvents implements audit.Sink.
func (l lenient) ProcessEvents(events ...*internal.Event) bool {
	l.Backend.ProcessEvents(events...)
	return true
}

// guard stands before all backends: it takes secrets out, leaves out what was quiet and went well, and sums up what
// strangers were refused.
type guard struct {
	audit.Backend
	apart   audit.Backend             // the log of what strangers were refused, if it is one of its own
	refused *sums                     // nil: nothing is summed up
	quiet   audit.PolicyRuleEvaluator // nil: nothing is left out
}

// Run implements audit.Backend.
func (g guard) Run(stop <-chan struct{}) error {
	if g.apart != nil {
		if err := g.apart.Run(stop); err != nil {
			return err
		}
	}
	return g.Backend.Run(stop)
}

// Shutdown implements audit.Backend.
func (g guard) Shutdown() {
	if g.refused != nil {
		g.refused.flush()
	}
	if g.apart != nil {
		g.apart.Shutdown()
	}
	g.Backend.Shutdown()
}

// ProcessEvents implements audit.Sink.
func (g guard) ProcessEvents(events ...*internal.Event) bool {
	kept := make([]*internal.Event, 0, len(events))
	ok := true
	for _, ev := range events {
		switch {
		case !g.keeps(ev):
		case g.refused != nil && refusedStranger(ev):
			ok = g.refused.add(redact(ev)) && ok
		default:
			kept = append(kept, redact(ev))
		}
	}
	return (len(kept) == 0 || g.Backend.ProcessEvents(kept...)) && ok
}

func (g guard) keeps(ev *internal.Event) bool {
	if g.quiet == nil || ev.Stage == internal.StagePanic {
		return true
	}
	code := int32(0)
	if ev.ResponseStatus != nil {
		code = ev.ResponseStatus.Code
	}
	switch {
	case code == http.StatusUnauthorized: // the one stage of a request that nobody is known to have made is its begin
		return true
	case ev.Stage == internal.StageResponseStarted && (code >= http.StatusBadRequest || !lasts(ev.ObjectRef)):
		return false
	case code == http.StatusForbidden:
		return true
	}
	return g.quiet.EvaluatePolicyRule(attributesOf(ev)).Level != internal.LevelNone
}

// lasts reports whether a request may stay open for hours, so that its begin is to be on record too.
func lasts(ref *internal.ObjectReference) bool {
	if ref == nil {
		return false
	}
	switch ref.Subresource {
	case "exec", "attach", "portforward", "proxy", "log":
		return true
	}
	return false
}

// ownParts is the group that the built-in policy sees the server's own parts in. No user is in it otherwise.
const ownParts = "wherry.dev/own-parts"

func ownPart(name string) bool {
	switch name {
	case user.APIServerUser, user.KubeScheduler, user.KubeControllerManager:
		return true
	}
	return strings.HasPrefix(name, "system:controller:")
}

// attributesOf are those by which the event's request was judged, and is judged again.
func attributesOf(ev *internal.Event) authorizer.Attributes {
	a := authorizer.AttributesRecord{Verb: ev.Verb, Path: pathOf(ev.RequestURI)}
	if name := ev.User.Username; name != "" {
		groups := ev.User.Groups
		if ownPart(name) {
			groups = append(slices.Clone(groups), ownParts)
		}
		a.User = &user.DefaultInfo{Name: name, UID: ev.User.UID, Groups: groups}
	}
	if ref := ev.ObjectRef; ref != nil {
		a.ResourceRequest = true
		a.Namespace, a.Name, a.Resource, a.Subresource = ref.Namespace, ref.Name, ref.Resource, ref.Subresource
		a.APIGroup, a.APIVersion = ref.APIGroup, ref.APIVersion
	}
	return a
}

func pathOf(uri string) string {
	for i := range len(uri) {
		if uri[i] == '?' {
			return uri[:i]
		}
	}
	return uri
}
