// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/record"
	"github.com/wherryproject/wherry/internal/node/work"
	"github.com/wherryproject/wherry/internal/podspec"
)

// newPodInformer watches the pods of this node.
func newPodInformer(client kubernetes.Interface, node string) cache.SharedIndexInformer {
	lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		ofNode(node))
	return cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// ofNode selects the pods of a node.
func ofNode(node string) fields.Selector { return fields.OneTermEqualSelector("spec.nodeName", node) }

// listed are the pods that the API server has for this node, mirror pods among them.
func (a *Agent) listed() (out []*corev1.Pod) {
	if a.standalone() {
		return nil
	}
	for _, o := range a.pods.GetStore().List() {
		if p, ok := o.(*corev1.Pod); ok {
			out = append(out, p)
		}
	}
	return out
}

// SaveStatus is part of [work.Node]. It sends only what differs, and names the pod's UID so that it never meets another
// pod of the same name.
func (a *Agent) SaveStatus(ctx context.Context, pod *corev1.Pod, from, to *corev1.PodStatus) (*corev1.Pod, error) {
	changed := a.metrics.Saving(pod.UID)
	save := a.saveStatus
	if a.statics.Owns(pod.UID) {
		save = a.saveStatic
	}
	now, err := save(ctx, pod, from, to)
	a.metrics.Saved(pod, to, changed, err, time.Now())
	return now, err
}

func (a *Agent) saveStatus(ctx context.Context, pod *corev1.Pod, from, to *corev1.PodStatus) (*corev1.Pod, error) {
	if a.standalone() {
		return nil, work.ErrGone // an orphan, which nobody has a record of
	}
	patch, err := statusPatch(pod.UID, from, to)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	now, err := a.cfg.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return nil, work.ErrGone
	case apierrors.IsConflict(err) && strings.Contains(err.Error(), "uid"):
		return nil, work.ErrGone
	case err != nil:
		return nil, fmt.Errorf("storing the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return now, nil
}

// statusPatch makes a strategic merge patch from one status to another. (Pure.)
func statusPatch(uid types.UID, from, to *corev1.PodStatus) ([]byte, error) {
	type object struct {
		Metadata map[string]any   `json:"metadata"`
		Status   corev1.PodStatus `json:"status"`
	}
	old, err := json.Marshal(object{map[string]any{}, *from})
	if err != nil {
		return nil, err
	}
	now, err := json.Marshal(object{map[string]any{"uid": uid}, *to})
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, now, corev1.Pod{})
}

// Forget is part of [work.Node]. With finalizers the record stays until those who wait for it let go.
func (a *Agent) Forget(ctx context.Context, pod *corev1.Pod) error {
	if a.statics.Owns(pod.UID) {
		return a.statics.Forget(pod.UID)
	}
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	zero := int64(0)
	err := a.cfg.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &zero,
			Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// notSupported is Kubernetes' reason for refusing a pod that asks for what this node does not do (PL-20).
func notSupported(bad field.ErrorList) string {
	switch at := bad[0].Field; {
	case strings.HasSuffix(at, "appArmorProfile"), strings.Contains(at, "appArmorProfile."),
		strings.Contains(at, "container.apparmor.security.beta.kubernetes.io"):
		return "AppArmor"
	case strings.HasSuffix(at, "supplementalGroupsPolicy"):
		return "SupplementalGroupsPolicyNotSupported"
	}
	return "NotSupported"
}

// Refuse is part of [work.Node]: a pod that asks for what this node does not do is refused as a whole, whoever bound it
// (PL-20), and so is one that does not fit beside those that are here, or that comes while the node is under pressure.
func (a *Agent) Refuse(pod *corev1.Pod) *plan.Refusal {
	if a.ending.is() {
		return &plan.Refusal{Reason: reasonShutdown, Message: refusedShutdown}
	}
	if os := pod.Spec.OS; os != nil && os.Name != corev1.Linux {
		return &plan.Refusal{Reason: "PodOSNotSupported",
			Message: "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS"}
	}
	if os := pod.Labels[corev1.LabelOSStable]; os != "" && os != string(corev1.Linux) {
		return &plan.Refusal{Reason: "PodOSSelectorNodeLabelDoesNotMatch",
			Message: "Pod was rejected: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"}
	}
	if bad := podspec.UnsupportedOn(pod, a.hostCan()); len(bad) > 0 {
		return &plan.Refusal{Reason: notSupported(bad), Message: "Pod was rejected: " + bad.ToAggregate().Error()}
	}
	if missing := a.cfg.Features.Missing(pod); missing != "" {
		return &plan.Refusal{Reason: "FeatureGateOff", Message: "Pod was rejected: " + missing + " at this node",
			Begun: true}
	}
	if bad := podspec.ForbiddenSysctl(pod, a.cfg.UnsafeSysctls); bad != "" {
		return &plan.Refusal{Reason: "SysctlForbidden", Message: "Pod was rejected: " + bad}
	}
	if r := a.admission.refusal(pod.UID); r != nil {
		return r
	}
	if why := a.evictor.refuse(pod); why != "" {
		return &plan.Refusal{Reason: plan.ReasonEvicted, Message: "Pod was rejected: " + why}
	}
	return nil
}

// remember records a pod beside the store, for a server that starts on a store which has lost it. One that is being
// deleted is recorded once: from then on its folder is taken away.
func (a *Agent) remember(was, pod *corev1.Pod) {
	if a.cfg.StoreID == "" || was != nil && was.DeletionTimestamp != nil {
		return
	}
	folder := filepath.Join(a.cfg.podsFolder(), string(pod.UID))
	if err := record.Write(folder, record.Record{Store: a.cfg.StoreID, Pod: pod}); err != nil {
		a.log.Warn("cannot record a pod beside the store", "pod", pod.Namespace+"/"+pod.Name, "err", err)
	}
}

// endStrays ends the processes of this node's pods that the runtime knows nothing of, when the agent starts and before
// anything is started again: the runtime has lost its state, and a pod that is not to be restarted would be reported to
// have ended and go on. Pods are known by their folders, see [ops.Runner].
func (a *Agent) endStrays(ctx context.Context) {
	if a.cfg.Cgroups == nil {
		return
	}
	known, err := a.cfg.CRI.Pods(ctx)
	if err != nil {
		a.log.Warn("cannot look for processes that the runtime has lost sight of", "err", err)
		return
	}
	runs := map[types.UID]bool{}
	for _, p := range known {
		runs[types.UID(p.UID)] = p.Running
	}
	folders, err := a.volumes.List()
	if err != nil {
		a.log.Warn("cannot look for processes that the runtime has lost sight of", "err", err)
	}
	for _, uid := range folders {
		if runs[uid] {
			continue
		}
		n, err := a.cfg.Cgroups.EndPod(ctx, uid)
		if n > 0 {
			a.log.Warn("processes of a pod that the runtime knows nothing of have been ended", "uid", string(uid),
				"count", n)
		}
		if err != nil {
			a.log.Warn("processes of a pod that the runtime knows nothing of cannot be ended", "uid", string(uid),
				"err", err)
		}
	}
}

// adoptOrphans gives a worker to every pod that the runtime or a folder still knows and the API server does not.
func (a *Agent) adoptOrphans(ctx context.Context) {
	orphans := map[types.UID]*corev1.Pod{}
	found := func(uid types.UID, namespace, name string) {
		if p := orphans[uid]; uid != "" && !a.execs.Owns(uid) && (p == nil || p.Name == "") {
			orphans[uid] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Namespace: namespace, Name: name}}
		}
	}
	known, err := a.cfg.CRI.Pods(ctx)
	errs := []error{err}
	for _, p := range known {
		found(types.UID(p.UID), p.Namespace, p.Name)
	}
	logs, err := a.cfg.Logs.List()
	errs = append(errs, err)
	for _, p := range logs {
		found(p.UID, p.Namespace, p.Name)
	}
	folders, err := a.volumes.List()
	errs = append(errs, err)
	if a.cfg.Cgroups != nil {
		groups, err := a.cfg.Cgroups.List()
		errs = append(errs, err)
		folders = append(folders, groups...)
	}
	for _, uid := range folders {
		found(uid, "", "")
	}
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		a.log.Warn("cannot find everything left by earlier pods", "err", err)
	}
	recorded := map[types.UID]bool{}
	for _, p := range a.listed() {
		recorded[p.UID] = true // its worker has ended just now, or is about to be made
	}
	for uid, p := range orphans {
		if !recorded[uid] && !a.statics.Owns(uid) && !a.workers.Has(uid) {
			a.log.Info("removing a pod without a record", "pod", p.Namespace+"/"+p.Name, "uid", string(uid))
			a.workers.Adopt(p)
		}
	}
}
