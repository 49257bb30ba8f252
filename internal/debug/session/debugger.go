// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/resourcequota"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/features"
)

// Debugger is the server's part in debugging: it makes and stops debug containers, and puts on record who entered which
// pod.
type Debugger struct {
	pods, records, events *registry.REST
	node                  func(ctx context.Context, name string) (*corev1.Node, error)
	schemes               *registry.Schemes
	authorizer            authorizer.UnconditionalAuthorizer
	admission             admission.Interface
	gates                 *features.Gates
	quotas                *resourcequota.Quotas
	log                   *slog.Logger

	background sync.WaitGroup // writes beside a request
}

var _ connect.Debugging = (*Debugger)(nil)

// writePatience bounds a write that goes on though the client may be gone.
const writePatience = 10 * time.Second

// Host is the server whose pods are debugged.
type Host struct {
	Stores     registry.Stores
	Schemes    *registry.Schemes
	Authorizer authorizer.UnconditionalAuthorizer
	Admission  admission.Interface
	Gates      *features.Gates
	Quotas     *resourcequota.Quotas
	Log        *slog.Logger
}

// New begins nothing by itself.
func New(h Host) *Debugger {
	return &Debugger{
		pods: h.Stores["pods"], records: h.Stores[debugrun.Resource], events: h.Stores["events"], node: h.Stores.Node,
		schemes: h.Schemes, authorizer: h.Authorizer, admission: admission.WithAudit(h.Admission), gates: h.Gates,
		quotas: h.Quotas, log: h.Log,
	}
}

// Serve serves what debugging adds to pods.
func (d *Debugger) Serve(core map[string]rest.Storage) {
	if d.gates.Enabled(features.EphemeralContainers) { // off: there is no such subresource (EC-24)
		core["pods/ephemeralcontainers"] = ephemeralREST{d.pods.Sub(d.schemes, kinds.PodEphemeralRules()), d}
	}
	core["pods/"+debugrun.Subresource] = debugREST{d}
}

// RecordLate puts on record, beside everything else, what somebody added to a pod before the server was killed.
func (d *Debugger) RecordLate(ctx context.Context, started time.Time) {
	d.beside(ctx, "debug containers from before the start", func(context.Context) error { return d.late(ctx, started) })
}

// beside does a write that must be done though the client may go away. The server waits for it when it stops.
func (d *Debugger) beside(ctx context.Context, what string, write func(context.Context) error) {
	ctx = context.WithoutCancel(ctx)
	d.background.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, writePatience)
		defer cancel()
		if err := write(ctx); err != nil && !apierrors.IsNotFound(err) {
			d.log.Error("debugging could not be put on record", "what", what, "err", err)
		}
	})
}

// Close waits for the writes that are under way.
func (d *Debugger) Close() { d.background.Wait() }

// right is something a client must be allowed to do to a pod. The resource is one of the pod's own unless the group
// says otherwise.
type right struct{ verb, group, resource, subresource string }

func rightTo(verb, subresource string) right { return right{verb, "", "pods", subresource} }

// allowed refuses a client that lacks one of the rights, in the words of any other refusal.
func (d *Debugger) allowed(ctx context.Context, name string, rights ...right) error {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewUnauthorized("the request has no user")
	}
	for _, r := range rights {
		asked := authorizer.AttributesRecord{
			User: u, Verb: r.verb, Namespace: request.NamespaceValue(ctx), APIGroup: r.group, APIVersion: "v1",
			Resource: r.resource, Subresource: r.subresource, Name: name, ResourceRequest: true,
		}
		decision, reason, err := d.authorizer.Authorize(ctx, asked)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if decision != authorizer.DecisionAllow {
			return responsewriters.ForbiddenStatusError(asked, reason)
		}
	}
	return nil
}

func userName(ctx context.Context) string {
	if u, ok := request.UserFrom(ctx); ok {
		return u.GetName()
	}
	return "unknown"
}

// debugOn refuses what needs ephemeral containers where there are none, as their subresource does (EC-24), and debug
// sessions where these are off.
func (d *Debugger) debugOn(name string) error {
	message := ""
	switch {
	case !d.gates.Enabled(features.EphemeralContainers):
		message = fmt.Sprintf("pod %s: there are no debug containers on this server: the feature gate %s is off", name,
			features.EphemeralContainers)
	case !d.gates.Enabled(features.DebugSessions):
		message = fmt.Sprintf("pod %s: there are no debug sessions on this server: the feature gate %s is off; kubectl debug does without them", name, features.DebugSessions)
	default:
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: message,
		Details: &metav1.StatusDetails{Kind: "pods/ephemeralcontainers", Name: name},
	}}
}

// imageExecOn refuses image exec where it is off, in the way of a node that cannot do it (IX-12).
func (d *Debugger) imageExecOn(name string) error {
	if d.gates.Enabled(features.ImageExec) {
		return nil
	}
	return refusal(http.StatusNotImplemented, "NotImplemented", name,
		"image exec into pod %s: not implemented: the feature gate %s is off on this server", name, features.ImageExec)
}

// refusal is a Status with words of our own.
func refusal(code int32, reason metav1.StatusReason, pod, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
		Details: &metav1.StatusDetails{Kind: "pods", Name: pod},
	}}
}

// maxCommand bounds a command in a condition or event; the record has all of it.
const maxCommand = 200

func shown(command []string) string {
	text := strings.Join(command, " ")
	if text == "" {
		return "the image's own command"
	}
	if len(text) > maxCommand {
		return strings.ToValidUTF8(text[:maxCommand], "") + "…"
	}
	return text
}
