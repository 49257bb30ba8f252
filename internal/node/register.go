// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

const (
	leaseSeconds  = 40
	leaseEvery    = 10 * time.Second
	statusEvery   = 5 * time.Minute // also when nothing has changed
	registerRetry = 200 * time.Millisecond
)

// register makes this node known, or brings its record up to date (PL-13).
func (a *Agent) register(ctx context.Context) error {
	for wait := registerRetry; ; wait = min(2*wait, 10*time.Second) {
		err := a.tryRegister(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) {
			return fmt.Errorf("registering node %s: %w", a.cfg.NodeName, err)
		}
		level := slog.LevelWarn
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			level = slog.LevelDebug // somebody else wrote to it in between
		}
		a.log.Log(ctx, level, "cannot register the node yet", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (a *Agent) tryRegister(ctx context.Context) error {
	want := a.cfg.Registration.Object(a.cfg.NodeName)
	want.Annotations = a.cfg.Annotations
	want.Status = a.nodeStatus(ctx, nil)
	have, err := a.object(ctx, want)
	if err != nil {
		return err
	}
	if err := a.renewLease(ctx); err != nil {
		return err
	}
	if err := a.csi.Advertise(ctx); err != nil {
		return err
	}
	return a.updateStatus(ctx, have, a.images(ctx, have.Status.Images))
}

// object makes the node's object, or gives one that there is the labels and annotations that it must have.
func (a *Agent) object(ctx context.Context, want *corev1.Node) (*corev1.Node, error) {
	nodes := a.cfg.Client.CoreV1().Nodes()
	have, err := nodes.Get(ctx, a.cfg.NodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		have, err = nodes.Create(ctx, want, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	labels, annotations := with(have.Labels, kept(want.Labels)), with(have.Annotations, want.Annotations)
	if maps.Equal(labels, have.Labels) && maps.Equal(annotations, have.Annotations) {
		return have, nil
	}
	labelled := have.DeepCopy()
	labelled.Labels, labelled.Annotations = labels, annotations
	return a.patchNode(ctx, have, labelled)
}

func (a *Agent) updateStatus(ctx context.Context, have *corev1.Node, images []corev1.ContainerImage) error {
	now := have.DeepCopy()
	now.Status = a.nodeStatus(ctx, have.Status.Conditions)
	now.Status.Images, now.Status.VolumesInUse, now.Status.VolumesAttached = images,
		a.csi.InUse(), have.Status.VolumesAttached
	for _, c := range have.Status.Conditions { // of others
		if nodeCondition(now.Status.Conditions, c.Type) == nil && c.Type != FirewallBlocksPods {
			now.Status.Conditions = append(now.Status.Conditions, c)
		}
	}
	keepOthers(now.Status.Capacity, have.Status.Capacity)
	keepOthers(now.Status.Allocatable, have.Status.Allocatable)
	stored, err := a.patchNode(ctx, have, now, "status")
	if err == nil {
		a.admission.setNode(stored)
	}
	return err
}

// patchNode has what this agent says of its node stored: what differs between the node as it was read and as it is to
// be.
func (a *Agent) patchNode(ctx context.Context, have, want *corev1.Node, subresource ...string) (*corev1.Node, error) {
	patch, err := nodePatch(have, want)
	if err != nil {
		return nil, err
	}
	return a.cfg.Client.CoreV1().Nodes().Patch(ctx, a.cfg.NodeName, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, subresource...)
}

// keepOthers keeps resources that somebody else has given the node: extended ones, which have a domain in their names.
func keepOthers(now, have corev1.ResourceList) {
	for name, q := range have {
		if _, own := now[name]; !own && strings.Contains(string(name), "/") {
			now[name] = q
		}
	}
}

// heartbeat renews the lease, and publishes the node's status when it changes.
func (a *Agent) heartbeat(ctx context.Context) {
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	var published time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.pressed:
		}
		if err := a.renewLease(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("cannot renew the node's lease", "err", err)
			continue
		}
		have, err := a.cfg.Client.CoreV1().Nodes().Get(ctx, a.cfg.NodeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			err = a.tryRegister(ctx)
		} else if err == nil {
			images := a.images(ctx, have.Status.Images)
			if changed(have.Status.Conditions, a.conditions(ctx, have.Status.Conditions)) ||
				lacks(have.Status.Capacity, a.capacity()) || lacks(have.Status.Allocatable, a.allocatable()) ||
				!slices.Equal(have.Status.VolumesInUse, a.csi.InUse()) ||
				!sameImages(have.Status.Images, images) ||
				time.Since(published) > statusEvery {
				err = a.updateStatus(ctx, have, images)
				published = time.Now()
			}
		}
		if err != nil && ctx.Err() == nil {
			a.log.Warn("cannot store the node's status", "err", err)
		}
	}
}

// changed reports whether any of the node's conditions is not as it was.
func changed(was, now []corev1.NodeCondition) bool {
	for i := range now {
		if c := nodeCondition(was, now[i].Type); c == nil || c.Status != now[i].Status || c.Message != now[i].Message {
			return true
		}
	}
	return false
}

// lacks reports whether any of the resources is not as the node has it.
func lacks(was, now corev1.ResourceList) bool {
	for name, q := range now {
		if had, ok := was[name]; !ok || had.Cmp(q) != 0 {
			return true
		}
	}
	return false
}

// conditionsChanged has the node's status published soon.
func (a *Agent) conditionsChanged() {
	select {
	case a.pressed <- struct{}{}:
	default: // it is about to be
	}
}

// renewLease shows the cluster that the agent is alive.
func (a *Agent) renewLease(ctx context.Context) error {
	leases := a.cfg.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, seconds, name := metav1.NewMicroTime(time.Now()), int32(leaseSeconds), a.cfg.NodeName
	have, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: corev1.NamespaceNodeLease, OwnerReferences: a.leaseOwner(ctx)},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}},
			metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if len(have.OwnerReferences) == 0 {
		have.OwnerReferences = a.leaseOwner(ctx)
	}
	have.Spec.HolderIdentity, have.Spec.LeaseDurationSeconds, have.Spec.RenewTime = &name, &seconds, &now
	_, err = leases.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

// leaseOwner is the node's object, so that the lease goes with it; none while the node is not known, and then the next
// renewal asks again: a lease without an owner says as well that the agent lives.
func (a *Agent) leaseOwner(ctx context.Context) []metav1.OwnerReference {
	node, err := a.cfg.Client.CoreV1().Nodes().Get(ctx, a.cfg.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
}

// nodeStatus is the whole status of the node as this agent knows it.
func (a *Agent) nodeStatus(ctx context.Context, before []corev1.NodeCondition) corev1.NodeStatus {
	s := corev1.NodeStatus{
		Capacity:    a.capacity(),
		Allocatable: a.allocatable(),
		Conditions:  a.conditions(ctx, before),
		NodeInfo:    a.machine.info(),
	}
	s.DeclaredFeatures = declaredFeatures()
	s.RuntimeHandlers, s.Features = a.can.handlers, &corev1.NodeFeatures{SupplementalGroupsPolicy: &a.can.groupsPolicy}
	s.NodeInfo.ContainerRuntimeVersion = a.runtime + "://" + a.runtimeVersion
	s.NodeInfo.KubeletVersion = a.cfg.Version
	for _, ip := range a.cfg.NodeIPs {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: a.cfg.NodeName})
	if at, ok := a.cfg.Listener.Addr().(*net.TCPAddr); ok {
		s.DaemonEndpoints.KubeletEndpoint.Port = int32(at.Port)
	}
	return s
}

// pressureCondition is how a node shows one kind of pressure, in the kubelet's words.
type pressureCondition struct {
	kind                     corev1.NodeConditionType
	yes, yesReason, no, none string
}

func pressures() []pressureCondition {
	return []pressureCondition{
		{corev1.NodeMemoryPressure, "kubelet has insufficient memory available", "KubeletHasInsufficientMemory",
			"kubelet has sufficient memory available", "KubeletHasSufficientMemory"},
		{corev1.NodeDiskPressure, "kubelet has disk pressure", "KubeletHasDiskPressure", "kubelet has no disk pressure",
			"KubeletHasNoDiskPressure"},
		{corev1.NodePIDPressure, "kubelet has insufficient PID available", "KubeletHasInsufficientPID",
			"kubelet has sufficient PID available", "KubeletHasSufficientPID"},
	}
}

// conditions derives the node's conditions.
func (a *Agent) conditions(ctx context.Context, before []corev1.NodeCondition) []corev1.NodeCondition {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status"}
	if why := a.runtimeTrouble(ctx); why != "" {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", why
	}
	if a.ending.is() {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", "node is shutting down"
	}
	var out []corev1.NodeCondition
	state, _ := a.evictor.pressed()
	for _, p := range pressures() {
		c := corev1.NodeCondition{Type: p.kind, Status: corev1.ConditionFalse, Reason: p.none, Message: p.no}
		if state.Under(p.kind) {
			c.Status, c.Reason, c.Message = corev1.ConditionTrue, p.yesReason, p.yes
		}
		out = append(out, c)
	}
	if a.cfg.Blockers != nil {
		out = append(out, firewallCondition(a.cfg.Blockers()))
	}
	out = append(out, ready)
	now := metav1.NewTime(time.Now())
	for i := range out {
		out[i].LastHeartbeatTime, out[i].LastTransitionTime = now, now
		if was := nodeCondition(before, out[i].Type); was != nil && was.Status == out[i].Status {
			out[i].LastTransitionTime = was.LastTransitionTime
		}
	}
	return out
}

// runtimeTrouble says what keeps the runtime from running pods, or "".
func (a *Agent) runtimeTrouble(ctx context.Context) string {
	s, err := a.cfg.CRI.Runtime.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return "container runtime does not respond: " + cri.Message(err)
	}
	for _, c := range s.GetStatus().GetConditions() {
		// Runtimes add conditions of their own, such as warnings of what a later version drops; these two decide.
		if needed := c.GetType() == "RuntimeReady" || c.GetType() == "NetworkReady"; needed && !c.GetStatus() {
			return fmt.Sprintf("container runtime: %s is false: %s: %s", c.GetType(), c.GetReason(), c.GetMessage())
		}
	}
	return ""
}

func nodeCondition(list []corev1.NodeCondition, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}
