// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/audit/buffered"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"
	"k8s.io/apiserver/plugin/pkg/audit/truncate"
	pluginwebhook "k8s.io/apiserver/plugin/pkg/audit/webhook"
)

// Recorder is what an API server's handlers need to put requests on record. Both fields are nil if nothing is to be recorded.
type Recorder struct {
	Backend audit.Backend
	Policy  audit.PolicyRuleEvaluator

	file io.Closer
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
	var backends []audit.Backend
	log, err := r.openLog(o.Log, dataDir)
	if err != nil {
		return nil, fmt.Errorf("--audit-log-path: %w", err)
	}
	if log != nil {
		backends = append(backends, o.Log.wrap(log))
	}
	if o.Webhook.ConfigFile != "" {
		hook, err := pluginwebhook.NewBackend(o.Webhook.ConfigFile, auditv1.SchemeGroupVersion,
			webhook.DefaultRetryBackoffWithInitialDelay(o.Webhook.InitialBackoff), nil)
		if err != nil {
			return nil, fmt.Errorf("--audit-webhook-config-file %s: %w", o.Webhook.ConfigFile, err)
		}
		backends = append(backends, o.Webhook.wrap(hook))
	}
	if len(backends) == 0 {
		return &Recorder{}, nil
	}
	guard.Backend = audit.Union(backends...)
	r.Backend = guard
	return r, nil
}

// Close closes the log, after the backend was shut down.
func (r *Recorder) Close() error {
	if r == nil || r.file == nil {
		return nil
	}
	return r.file.Close()
}

// builtinPolicy is the policy without a file, and the one that tells what of it is kept only if it was refused.
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

// guard stands before all backends: it takes secrets out, and leaves out what was quiet and went well.
type guard struct {
	audit.Backend
	quiet audit.PolicyRuleEvaluator // nil: nothing is left out
}

// ProcessEvents implements audit.Sink.
func (g guard) ProcessEvents(events ...*internal.Event) bool {
	kept := make([]*internal.Event, 0, len(events))
	for _, ev := range events {
		if g.keeps(ev) {
			kept = append(kept, redact(ev))
		}
	}
	return len(kept) == 0 || g.Backend.ProcessEvents(kept...)
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

// lasts tells whether a request may stay open for hours, so that its begin is to be on record too.
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

func (r *Recorder) openLog(o LogOptions, dataDir string) (audit.Backend, error) {
	path := o.Path
	switch path {
	case Off:
		return nil, nil
	case Stdout:
		if o.Out == nil {
			return nil, errors.New("standard output is closed")
		}
		return pluginlog.NewBackend(&lines{to: o.Out}, o.Format, auditv1.SchemeGroupVersion), nil
	case "":
		path = DefaultPath(dataDir)
	}
	if err := prepare(path); err != nil {
		return nil, err
	}
	file := &lumberjack.Logger{Filename: path, MaxAge: o.MaxAge, MaxBackups: o.MaxBackups, MaxSize: o.MaxSize, Compress: o.Compress}
	r.file = file
	return pluginlog.NewBackend(&lines{to: file}, o.Format, auditv1.SchemeGroupVersion), nil
}

// prepare makes the log and its folder, readable by their owner alone, and ends a line that an earlier server did not come to end.
func prepare(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: it cannot be rotated", path)
	}
	if info.Size() == 0 {
		return f.Close()
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		if _, err := f.WriteString("\n"); err != nil {
			return err
		}
	}
	return f.Close()
}

// lines writes whole lines: after one that was cut off, as by a full disk, the next begins on a line of its own.
type lines struct {
	mu   sync.Mutex
	to   io.Writer
	torn bool
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn {
		if _, err := l.to.Write([]byte("\n")); err != nil {
			return 0, err
		}
		l.torn = false
	}
	n, err := l.to.Write(p)
	l.torn = n > 0 && n < len(p)
	return n, err
}
