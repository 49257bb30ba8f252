// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
)

// lookAgain is how often claims are looked at where the node may not watch them: Kubernetes lets nodes read claims, and
// no more.
const lookAgain = time.Minute

// followClaim signals every change of a claim, and once the claim as it is.
func (m *Manager) followClaim(ctx context.Context, namespace, name string) <-chan struct{} {
	heard := make(chan struct{}, 1)
	signal := func() {
		select {
		case heard <- struct{}{}:
		default: // it is about to be looked at
		}
	}
	m.loops.Go(func() {
		for ctx.Err() == nil {
			w, err := m.cfg.Client.CoreV1().PersistentVolumeClaims(namespace).Watch(ctx,
				metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
			if err == nil {
				stop := context.AfterFunc(ctx, w.Stop)
				for range w.ResultChan() {
					signal()
				}
				stop()
				w.Stop()
			}
			signal()
			wait := lookAgain
			if err == nil {
				wait = time.Second // the server ends watches now and then
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	})
	return heard
}

// grow has a volume made larger if its claim's is.
func (m *Manager) grow(ctx context.Context, pod *corev1.Pod, volume string) {
	u, has := m.use(pod.UID, volume)
	if !has || !u.Published {
		return
	}
	size, grown, err := m.tryGrow(ctx, pod, volume, &u)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		m.cfg.Event(pod, corev1.EventTypeWarning, "VolumeResizeFailed",
			fmt.Sprintf("NodeExpandVolume failed for volume %q to %s: %v", u.Name, size.String(), err))
	case grown:
		m.cfg.Event(pod, corev1.EventTypeNormal, "FileSystemResizeSuccessful",
			fmt.Sprintf("MountVolume.NodeExpandVolume succeeded for volume %q: it has %s", u.Name, size.String()))
	}
}

func (m *Manager) tryGrow(ctx context.Context, pod *corev1.Pod, volume string, u *use) (size resource.Quantity,
	grown bool, err error) {
	release, err := m.turns.take(ctx, u.unique()) // of several pods with the volume one does it
	if err != nil {
		return size, false, err
	}
	defer release()
	claims := m.cfg.Client.CoreV1().PersistentVolumeClaims(pod.Namespace)
	claim, err := claims.Get(ctx, u.Claim, metav1.GetOptions{})
	if err != nil {
		return size, false, err
	}
	r, err := m.requestOf(ctx, pod, volume)
	if err != nil {
		return size, false, err
	}
	size, grows := terms.Grows(claim, r.PV)
	if !grows {
		return size, false, nil
	}
	v, err := m.terms(ctx, r)
	if err != nil {
		return size, false, err
	}
	d, err := m.connected(ctx, v.Driver)
	if err != nil {
		return size, false, err
	}
	if d.ability.Expand {
		if u.ReadOnly {
			return size, false, errors.New("it is mounted read-only: it grows when a pod that may write has it")
		}
		if claim, err = m.patchClaim(ctx, claim,
			terms.Growing(claim, corev1.PersistentVolumeClaimNodeResizeInProgress)); err != nil {
			return size, false, err
		}
		if err := m.expand(ctx, &call{m: m, d: d, v: &v, pod: pod}, u, size); err != nil {
			if final(err) {
				_, perr := m.patchClaim(ctx, claim,
					terms.Growing(claim, corev1.PersistentVolumeClaimNodeResizeInfeasible))
				err = errors.Join(err, perr)
			}
			return size, false, err
		}
	}
	_, err = m.patchClaim(ctx, claim, terms.Grown(claim, size))
	return size, err == nil, err
}

func (m *Manager) expand(ctx context.Context, c *call, u *use, size resource.Quantity) error {
	secrets, err := m.secrets(ctx, c.v.ExpandSecret)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = c.d.node.NodeExpandVolume(ctx, &spec.NodeExpandVolumeRequest{VolumeId: u.Handle, VolumePath: u.Target,
		StagingTargetPath: u.Staging, CapacityRange: &spec.CapacityRange{RequiredBytes: size.Value()},
		VolumeCapability: c.v.Capability(c.d.ability, terms.Group(c.pod, c.d.ability)), Secrets: secrets})
	return driverFault(c.d.name, "NodeExpandVolume", err)
}

// patchClaim stores what differs in a claim's status.
func (m *Manager) patchClaim(ctx context.Context, was, now *corev1.PersistentVolumeClaim) (
	*corev1.PersistentVolumeClaim, error) {
	before, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.PersistentVolumeClaim{})
	if err != nil {
		return nil, err
	}
	return m.cfg.Client.CoreV1().PersistentVolumeClaims(was.Namespace).Patch(ctx, was.Name,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}
