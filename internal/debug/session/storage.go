// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/debug/permit"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/podspec"
)

// ephemeralREST serves pods/ephemeralcontainers: whoever adds one taints the pod in the same write, and is put on
// record.
type ephemeralREST struct {
	registry.Subresource
	debugger *Debugger
}

// Update implements rest.Updater.
func (r ephemeralREST) Update(ctx context.Context, name string, obj rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	var added []corev1.EphemeralContainer
	rules := kinds.PodEphemeralRules()
	prepare, now := rules.PrepareUpdate, time.Now()
	rules.PrepareUpdate = func(obj, old runtime.Object) {
		prepare(obj, old)
		pod := obj.(*corev1.Pod)
		added = podspec.AddedEphemeral(pod, old.(*corev1.Pod))
		record.NoteAdding(ctx, added)
		for i := range added {
			if err := record.MarkAdded(pod, record.UserName(ctx), added[i].Name, now); err != nil {
				r.debugger.log.Error("debugging could not be put on record", "pod", pod.Namespace+"/"+pod.Name, "err",
					err)
			}
		}
	}
	store := r.debugger.pods.With(r.debugger.schemes, rules)
	out, created, err := r.UpdateBy(ctx, store, name, obj, create, update, options)
	if err != nil || len(added) == 0 || dryrun.IsDryRun(options.DryRun) {
		return out, created, err
	}
	<-r.debugger.recorder.Added(ctx, out.(*corev1.Pod), added, nil)
	return out, created, nil
}

// debugREST serves pods/debug: GET lists the runs of a pod's debug sessions, DELETE of a name below it stops a debug
// container (DC-08).
type debugREST struct{ debugger *Debugger }

var _ rest.Connecter = debugREST{}

// New implements rest.Storage: what admission is shown.
func (debugREST) New() runtime.Object { return &corev1.PodProxyOptions{} }

// Destroy implements rest.Storage.
func (debugREST) Destroy() {}

// ConnectMethods implements rest.Connecter.
func (debugREST) ConnectMethods() []string { return []string{http.MethodGet, http.MethodDelete} }

// NewConnectOptions implements rest.Connecter: the options of a proxy have what is needed, the rest of the path.
func (debugREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &corev1.PodProxyOptions{}, true, "path"
}

// Connect implements rest.Connecter.
func (r debugREST) Connect(ctx context.Context, name string, options runtime.Object,
	responder rest.Responder) (http.Handler, error) {
	opts, ok := options.(*corev1.PodProxyOptions)
	if !ok {
		return nil, fmt.Errorf("invalid options object: %T", options)
	}
	container := strings.Trim(opts.Path, "/")
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		out, err := r.answer(ctx, req.Method, name, container)
		if err != nil {
			responder.Error(err)
			return
		}
		gv := debugrun.GroupVersion()
		if _, plain := out.(*metav1.Status); plain {
			gv = corev1.SchemeGroupVersion
		}
		responsewriters.WriteObjectNegotiated(schemes.WithoutProtobuf{NegotiatedSerializer: r.debugger.schemes.Codecs},
			negotiation.DefaultEndpointRestrictions, gv, w, req, http.StatusOK, out, false)
	}), nil
}

func (r debugREST) answer(ctx context.Context, method, pod, container string) (runtime.Object, error) {
	switch {
	case method == http.MethodGet && container == "":
		return r.debugger.recorder.RunsOf(ctx, pod)
	case method == http.MethodDelete && container != "" && !strings.Contains(container, "/"):
		return r.debugger.stop(ctx, pod, container)
	}
	return nil, apierrors.NewMethodNotSupported(corev1.Resource("pods/debug"), strings.ToLower(method)+
		": read pods/NAME/debug, or delete pods/NAME/debug/CONTAINER")
}

// answerEarly is how long before the end of a request's time its wait is given up, so that the answer says what is the
// case.
const answerEarly = time.Second

// stop stops a debug container and returns when it has ended (DC-08).
func (d *Debugger) stop(ctx context.Context, podName, name string) (runtime.Object, error) {
	pod, err := registry.Get[corev1.Pod](ctx, d.pods, request.NamespaceValue(ctx), podName)
	if err != nil {
		return nil, err
	}
	state := podspec.DebugStateOf(pod, name)
	switch state.Phase {
	case podspec.DebugAbsent:
		return nil, permit.Refusal(http.StatusNotFound, metav1.StatusReasonNotFound, podName,
			"pod %s has no debug container %q", podName, name)
	case podspec.DebugEnded:
		return nil, permit.Refusal(http.StatusConflict, metav1.StatusReasonConflict, podName,
			"debug container %q of pod %s has ended already: %s", name, podName, endWords(state))
	}
	if pod, err = d.setStop(ctx, pod, name, state.Run, time.Now(), record.UserName(ctx)); err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerEarly))
		defer cancel()
	}
	pod, err = d.follow(ctx, pod, func(p *corev1.Pod) (bool, bool, error) {
		s := podspec.DebugStateOf(p, name)
		return s.Phase == podspec.DebugEnded || s.Run != state.Run, s.Begun && s.Phase != podspec.DebugRunning, nil
	})
	switch {
	case errors.Is(err, errUntold) || errors.Is(err, context.DeadlineExceeded):
		return nil, permit.Refusal(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, podName,
			"debug container %q of pod %s was asked to stop but has not exited yet: check that node %s is ready", name,
			podName, pod.Spec.NodeName)
	case err != nil:
		return nil, err
	}
	return &metav1.Status{
		Status: metav1.StatusSuccess, Code: http.StatusOK,
		Message: fmt.Sprintf("debug container %q of pod %s is stopped", name, podName),
		Details: &metav1.StatusDetails{Kind: "pods", Name: podName, UID: pod.UID},
	}, nil
}

func endWords(s podspec.DebugState) string {
	return fmt.Sprintf("exit code %d, %s", s.Terminated.ExitCode, s.Terminated.Reason)
}
