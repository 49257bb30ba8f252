// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// TestBuiltinPolicy says of each sort of request whether it is on record when it went well; refused ones are always.
func TestBuiltinPolicy(t *testing.T) {
	all, quiet, err := builtinPolicy()
	if err != nil {
		t.Fatal(err)
	}
	jane := authnv1.UserInfo{Username: "jane", Groups: []string{"system:authenticated"}}
	node := authnv1.UserInfo{Username: "system:node:n1", Groups: []string{"system:nodes", "system:authenticated"}}
	self := authnv1.UserInfo{Username: "system:apiserver", Groups: []string{"system:masters"}}
	controller := authnv1.UserInfo{Username: "system:controller:namespace-controller", Groups: []string{"system:authenticated"}}
	operator := authnv1.UserInfo{Username: "system:serviceaccount:kube-system:op", Groups: []string{"system:serviceaccounts:kube-system"}}
	type ref = internal.ObjectReference
	for _, tc := range []struct {
		name string
		who  authnv1.UserInfo
		verb string
		ref  *ref
		uri  string
		kept bool
	}{
		{"creates a pod", jane, "create", &ref{Resource: "pods"}, "/api/v1/namespaces/a/pods", true},
		{"lists pods", jane, "list", &ref{Resource: "pods"}, "", false},
		{"watches pods", jane, "watch", &ref{Resource: "pods"}, "", false},
		{"deletes pods", jane, "deletecollection", &ref{Resource: "pods"}, "", true},
		{"reads a secret", jane, "get", &ref{Resource: "secrets", Name: "s"}, "", true},
		{"lists secrets", jane, "list", &ref{Resource: "secrets"}, "", true},
		{"node reads a secret", node, "get", &ref{Resource: "secrets", Name: "s"}, "", false},
		{"exec by WebSocket", jane, "get", &ref{Resource: "pods", Subresource: "exec"}, "", true},
		{"exec by SPDY", jane, "create", &ref{Resource: "pods", Subresource: "exec"}, "", true},
		{"the server itself execs", self, "get", &ref{Resource: "pods", Subresource: "exec"}, "", true},
		{"reads a log", jane, "get", &ref{Resource: "pods", Subresource: "log"}, "", true},
		{"port-forward", jane, "get", &ref{Resource: "pods", Subresource: "portforward"}, "", true},
		{"adds a debug container", jane, "patch", &ref{Resource: "pods", Subresource: "ephemeralcontainers"}, "", true},
		{"reads node proxy", jane, "get", &ref{Resource: "nodes", Subresource: "proxy"}, "", true},
		{"node reports a pod", node, "patch", &ref{Resource: "pods", Subresource: "status"}, "", false},
		{"jane reports a pod", jane, "patch", &ref{Resource: "pods", Subresource: "status"}, "", true},
		{"node renews its lease", node, "update", &ref{APIGroup: "coordination.k8s.io", Resource: "leases"}, "", false},
		{"operator renews its lease", jane, "update", &ref{APIGroup: "coordination.k8s.io", Resource: "leases"}, "", false},
		{"jane deletes a lease", jane, "delete", &ref{APIGroup: "coordination.k8s.io", Resource: "leases"}, "", true},
		{"an event", jane, "create", &ref{APIGroup: "events.k8s.io", Resource: "events"}, "", false},
		{"jane deletes events", jane, "deletecollection", &ref{Resource: "events"}, "", true},
		{"server binds a pod", self, "create", &ref{Resource: "pods", Subresource: "binding"}, "", false},
		{"jane binds a pod", jane, "create", &ref{Resource: "pods", Subresource: "binding"}, "", true},
		{"a controller reads secrets", controller, "list", &ref{Resource: "secrets"}, "", false},
		{"a controller makes an account", controller, "create", &ref{Resource: "serviceaccounts"}, "", true},
		{"an operator in kube-system reads secrets", operator, "list", &ref{Resource: "secrets"}, "", true},
		{"server updates a quota's status", self, "update", &ref{Resource: "resourcequotas", Subresource: "status"}, "", false},
		{"node deletes a pod", node, "delete", &ref{Resource: "pods", Name: "p"}, "", true},
		{"may I?", jane, "create", &ref{APIGroup: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}, "", false},
		{"who am I?", jane, "create", &ref{APIGroup: "authentication.k8s.io", Resource: "selfsubjectreviews"}, "", false},
		{"jane takes a token", jane, "create", &ref{Resource: "serviceaccounts", Subresource: "token"}, "", true},
		{"node takes a pod's token", node, "create", &ref{Resource: "serviceaccounts", Subresource: "token"}, "", false},
		{"health", jane, "get", nil, "/healthz", false},
		{"metrics", jane, "get", nil, "/metrics", false},
		{"profile", jane, "get", nil, "/debug/pprof/heap?debug=1", true},
		{"flags", jane, "put", nil, "/debug/flags/v", true},
		{"nobody", authnv1.UserInfo{}, "get", &ref{Resource: "pods"}, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var heard sink
			g := guard{Backend: &heard, quiet: quiet}
			ev := &internal.Event{Stage: internal.StageResponseComplete, User: tc.who, Verb: tc.verb, ObjectRef: tc.ref, RequestURI: tc.uri,
				ResponseStatus: &metav1.Status{Code: 200}}
			if level := all.EvaluatePolicyRule(attributesOf(ev)).Level; level != internal.LevelMetadata {
				t.Errorf("level %s, want Metadata: no body is ever recorded, and every refusal is", level)
			}
			g.ProcessEvents(ev)
			if kept := len(heard.events) == 1; kept != tc.kept {
				t.Errorf("kept %t, want %t", kept, tc.kept)
			}
			for _, code := range []int32{401, 403} {
				heard.events = nil
				ev.ResponseStatus = &metav1.Status{Code: code}
				if g.ProcessEvents(ev); len(heard.events) != 1 {
					t.Errorf("a refusal with %d is not on record", code)
				}
			}
			heard.events, ev.Stage = nil, internal.StagePanic
			if g.ProcessEvents(ev); len(heard.events) != 1 {
				t.Error("a panic is not on record")
			}
		})
	}
	t.Run("the begin of what lasts", func(t *testing.T) {
		for subresource, want := range map[string]map[int32]bool{"exec": {101: true, 403: false}, "": {200: false, 401: true, 403: false}} {
			for code, kept := range want {
				var heard sink
				g := guard{Backend: &heard, quiet: quiet}
				g.ProcessEvents(&internal.Event{Stage: internal.StageResponseStarted, User: jane, Verb: "get",
					ObjectRef: &ref{Resource: "pods", Subresource: subresource}, ResponseStatus: &metav1.Status{Code: code}})
				if got := len(heard.events) == 1; got != kept {
					t.Errorf("%q with %d: kept %t, want %t", subresource, code, got, kept)
				}
			}
		}
	})
}

// sink keeps events.
type sink struct{ events []*internal.Event }

func (s *sink) ProcessEvents(events ...*internal.Event) bool {
	s.events = append(s.events, events...)
	return true
}
func (*sink) Run(<-chan struct{}) error { return nil }
func (*sink) Shutdown()                 {}
func (*sink) String() string            { return "sink" }

// TestRedact proves that no secret gets into a record, and that one record is bounded.
func TestRedact(t *testing.T) {
	body := &runtime.Unknown{Raw: []byte(`{"data":{"k":"hunter2"}}`)}
	for _, tc := range []struct {
		name string
		in   internal.Event
	}{
		{"token in the address", internal.Event{RequestURI: "/api/v1/pods?access_token=hunter2&limit=5"}},
		{"token under another name", internal.Event{RequestURI: "/api/v1/pods?X-Auth-Token=hunter2"}},
		{"escaped name", internal.Event{RequestURI: "/api/v1/pods?access%5Ftoken=hunter2"}},
		{"password of what is proxied", internal.Event{RequestURI: "/api/v1/namespaces/a/pods/p/proxy/login?user=jane&password=hunter2"}},
		{"a query that is none", internal.Event{RequestURI: "/x?%zz&access_token=hunter2"}},
		{"secret", internal.Event{ObjectRef: &internal.ObjectReference{Resource: "secrets"}, RequestObject: body, ResponseObject: body}},
		{"token request", internal.Event{ObjectRef: &internal.ObjectReference{Resource: "serviceaccounts", Subresource: "token"}, ResponseObject: body}},
		{"token review", internal.Event{ObjectRef: &internal.ObjectReference{APIGroup: "authentication.k8s.io", Resource: "tokenreviews"}, RequestObject: body}},
		{"what is wrong with a secret", internal.Event{ObjectRef: &internal.ObjectReference{Resource: "secrets"},
			ResponseStatus: &metav1.Status{Code: 422, Message: `data: Invalid value: "hunter2"`, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "hunter2"}}}}}},
		{"what a webhook did to a secret", internal.Event{ObjectRef: &internal.ObjectReference{Resource: "secrets"},
			Annotations: map[string]string{patchNote + "round_0_index_0": "hunter2", "other": "stays"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.in.DeepCopy()
			out := redact(&tc.in)
			text, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			raw := func(u *runtime.Unknown) string {
				if u == nil {
					return ""
				}
				return string(u.Raw)
			}
			if all := string(text) + raw(out.RequestObject) + raw(out.ResponseObject); strings.Contains(all, "hunter2") {
				t.Errorf("on record: %s", all)
			}
			if tc.in.Annotations != nil && out.Annotations["other"] != "stays" {
				t.Error("the other annotations are gone")
			}
			if a, b := mustJSON(t, before), mustJSON(t, &tc.in); a != b {
				t.Errorf("the event itself was changed:\n%s\n%s", a, b)
			}
		})
	}
	t.Run("what is no secret stays", func(t *testing.T) {
		in := internal.Event{RequestURI: "/api/v1/namespaces/a/pods/p/exec?command=sh&command=-c&container=main&labelSelector=a%3Db",
			ObjectRef: &internal.ObjectReference{Resource: "configmaps"}, RequestObject: body}
		if out := redact(&in); out.RequestURI != in.RequestURI || out.RequestObject == nil {
			t.Errorf("%+v", out)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		long := strings.Repeat("é", 1<<20)
		out := redact(&internal.Event{RequestURI: "/" + long, Verb: long, AuditID: types.UID(long), Annotations: map[string]string{"a": long},
			SourceIPs: slices.Concat(slices.Repeat([]string{"2001:db8::1"}, 1<<16), []string{"192.0.2.7"}),
			ResponseStatus: &metav1.Status{Message: long, Details: &metav1.StatusDetails{Name: long, UID: types.UID(long), Group: long, Kind: long,
				Causes: slices.Repeat([]metav1.StatusCause{{Type: "FieldValueInvalid", Message: long, Field: long}}, 1000)}},
			ObjectRef: &internal.ObjectReference{Resource: long, Namespace: long, Name: long, UID: types.UID(long), APIGroup: long, APIVersion: long,
				ResourceVersion: long, Subresource: long}})
		if text := mustJSON(t, out); len(text) > 10*maxText {
			t.Errorf("%d bytes", len(text))
		}
		if seen := out.SourceIPs[len(out.SourceIPs)-1]; seen != "192.0.2.7" {
			t.Errorf("the address that was seen is gone, the last one is %s", seen)
		}
	})
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPolicyFile proves that what is wrong with a policy is named with file, line and field.
func TestPolicyFile(t *testing.T) {
	const head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
	for name, tc := range map[string]struct{ text, want string }{
		"empty":            {"", "the file is empty"},
		"no YAML":          {head + "rules: [", "line 3: "},
		"no kind":          {"rules:\n- level: Metadata\n", "line 1: a policy must start with apiVersion: audit.k8s.io/v1 and kind: Policy"},
		"another kind":     {"apiVersion: audit.k8s.io/v1\nkind: Event\n", "a policy must start with"},
		"old version":      {"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules:\n- level: None\n", "a policy must start with"},
		"no rules":         {head, "rules: none given"},
		"unknown field":    {head + "rules:\n- level: Metadata\n- level: None\n  resorces: []\n", `line 6: unknown field "rules[1].resorces"`},
		"two faults":       {head + "rule: []\nrules:\n- levle: None\n", `line 5: unknown field "rules[0].levle"`},
		"unknown level":    {head + "rules:\n- level: Metadata\n- level: All\n", `line 5: rules[1].level: Unsupported value: "All"`},
		"no level":         {head + "rules:\n- verbs: [get]\n", `line 4: rules[0].level: Required value`},
		"unknown stage":    {head + "omitStages: [Begin]\nrules:\n- level: None\n", `line 3: omitStages[0]: Invalid value: "Begin"`},
		"path without a /": {head + "rules:\n- level: None\n  nonResourceURLs:\n  - /a\n  - healthz\n", `line 7: rules[0].nonResourceURLs[1]`},
		"version in group": {head + "rules:\n- level: None\n  resources:\n  - group: apps/v1\n", `line 5: rules[0].resources.group: Invalid value: "apps/v1"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			o := Defaults()
			o.PolicyFile = file
			_, err := Open(o, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "--audit-policy-file "+file) {
				t.Errorf("%v\nwant %s", err, tc.want)
			}
		})
	}
	t.Run("as a flag", func(t *testing.T) { // is told once
		o := Defaults()
		o.PolicyFile = filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(o.PolicyFile, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := o.Validate(); err == nil || strings.Count(err.Error(), "--audit-policy-file") != 1 {
			t.Error(err)
		}
	})
	t.Run("no such file", func(t *testing.T) {
		o := Defaults()
		o.PolicyFile = "/none/such.yaml"
		if _, err := Open(o, t.TempDir()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--audit-policy-file") {
			t.Error(err)
		}
	})
}

// TestLogFile proves modes, the end of a torn line, and what a policy file switches off.
func TestLogFile(t *testing.T) {
	dir := t.TempDir()
	path := DefaultPath(dir)
	write := func(o Options, ev internal.Event) {
		t.Helper()
		r, err := Open(o, dir)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Backend.ProcessEvents(&ev) {
			t.Error("not recorded")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	ev := internal.Event{Level: internal.LevelMetadata, AuditID: "one", Stage: internal.StageResponseComplete, Verb: "create",
		ObjectRef: &internal.ObjectReference{Resource: "pods"}, ResponseStatus: &metav1.Status{Code: 201}}
	write(Defaults(), ev)
	for file, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700 | fs.ModeDir} {
		if info, err := os.Stat(file); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", file, info.Mode(), err, want)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"kind":"Event","apiVersion":"au`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	ev.AuditID = "two"
	write(Defaults(), ev)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(got) != 3 {
		t.Fatalf("%d lines, want the torn one on a line of its own:\n%s", len(got), text)
	}
	var last auditv1.Event
	if err := json.Unmarshal([]byte(got[2]), &last); err != nil || last.AuditID != "two" {
		t.Errorf("%v %s", err, got[2])
	}
	o := Defaults()
	o.Log.Path = Off
	if r, err := Open(o, dir); err != nil || r.Backend != nil || r.Policy != nil {
		t.Errorf("%+v %v", r, err)
	}
	o.Log.Path = Stdout
	if _, err := Open(o, dir); err == nil {
		t.Error("written to a standard output that is not there")
	}
	var out bytes.Buffer
	o.Log.Out = &out
	if r, err := Open(o, dir); err != nil || !r.Backend.ProcessEvents(&ev) || !strings.Contains(out.String(), `"auditID":"two"`) {
		t.Errorf("%v %s", err, out.String())
	}
	o.Log.Path = "/dev/null"
	if _, err := Open(o, dir); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Error(err)
	}
}

// TestLines proves that a line after one that was cut off begins anew.
func TestLines(t *testing.T) {
	full := &fullDisk{left: 10}
	l := &lines{to: full}
	if _, err := l.Write([]byte("first line\n")); err == nil {
		t.Error("a write that was cut off must fail")
	}
	full.left = 100
	if _, err := l.Write([]byte("second\n")); err != nil {
		t.Error(err)
	}
	if got := full.String(); got != "first line\nsecond\n" {
		t.Errorf("%q", got)
	}
}

type fullDisk struct {
	bytes.Buffer
	left int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.left {
		n, _ := d.Buffer.Write(p[:d.left])
		d.left = 0
		return n, errors.New("no space left on device")
	}
	d.left -= len(p)
	return d.Buffer.Write(p)
}

// TestValidate proves that wrong flags are named.
func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Options){
		`--audit-log-format: "xml"`:               func(o *Options) { o.Log.Format = "xml" },
		"--audit-log-maxsize":                     func(o *Options) { o.Log.MaxSize = 0 },
		"--audit-log-maxbackup":                   func(o *Options) { o.Log.MaxBackups = -1 },
		"--audit-log-maxage":                      func(o *Options) { o.Log.MaxAge = -1 },
		`--audit-log-path: "audit.log"`:           func(o *Options) { o.Log.Path = "audit.log" },
		`--audit-log-mode: "maybe"`:               func(o *Options) { o.Log.Mode = "maybe" },
		`--audit-webhook-mode: ""`:                func(o *Options) { o.Webhook.Mode = "" },
		"--audit-webhook-batch-buffer-size":       func(o *Options) { o.Webhook.Batch.BufferSize = 0 },
		"--audit-webhook-batch-max-size":          func(o *Options) { o.Webhook.Batch.MaxBatchSize = 0 },
		"--audit-webhook-batch-throttle-qps":      func(o *Options) { o.Webhook.Batch.ThrottleQPS = 0 },
		"--audit-webhook-initial-backoff":         func(o *Options) { o.Webhook.InitialBackoff = 0 },
		"--audit-webhook-truncate-max-event-size": func(o *Options) { o.Webhook.Truncate, o.Webhook.Limits.MaxEventSize = true, 0 },
	} {
		o := Defaults()
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
}

// BenchmarkRecord measures what one event costs its request: judged, redacted, encoded, written to the log.
func BenchmarkRecord(b *testing.B) {
	r, err := Open(Defaults(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	base := internal.Event{Level: internal.LevelMetadata, AuditID: "0d0f2f5c-6b8e-4a53-9f3a-1c3a6b1b2c3d", Stage: internal.StageResponseComplete,
		RequestURI: "/api/v1/namespaces/shop/pods?fieldManager=kubectl&fieldValidation=Strict", Verb: "create", SourceIPs: []string{"127.0.0.1"}, UserAgent: "kubectl/v1.37.2",
		User:           authnv1.UserInfo{Username: "jane", Groups: []string{"dev", "system:authenticated"}},
		ObjectRef:      &internal.ObjectReference{Resource: "pods", Namespace: "shop", Name: "web", APIVersion: "v1"},
		ResponseStatus: &metav1.Status{Code: 201}}
	read := base
	read.Verb = "get"
	for name, ev := range map[string]*internal.Event{"kept": &base, "left out": &read} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r.Backend.ProcessEvents(ev)
			}
		})
	}
}
