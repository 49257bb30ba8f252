// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Request is for one volume of a pod.
type Request struct {
	Pod    *corev1.Pod
	Volume *corev1.Volume
	// PV is the volume of the pod's claim; nil: the volume is inline.
	PV *corev1.PersistentVolume
}

// driver is the name of the volume's.
func (r *Request) driver() string {
	switch {
	case r.PV != nil && r.PV.Spec.CSI != nil:
		return r.PV.Spec.CSI.Driver
	case r.PV == nil && r.Volume.CSI != nil:
		return r.Volume.CSI.Driver
	}
	return ""
}

// Published is a volume that is there.
type Published struct {
	Path  string
	Block bool
	// Group: the node gives the files to the pod's fsGroup.
	Group bool
}

// Has reports whether a driver has published a volume for a pod since the machine started.
func (m *Manager) Has(uid types.UID, volume string) (Published, bool) {
	u, has := m.use(uid, volume)
	if !has || !u.Published || u.Gone || u.Boot != m.cfg.Boot {
		return Published{}, false
	}
	return Published{Path: u.Target, Block: u.Block, Group: u.Group}, true
}

// Publish has the volume's driver make it for the pod. The pod's folder must be there. It can be repeated; what is
// there is not asked for again.
func (m *Manager) Publish(ctx context.Context, r Request) (Published, error) {
	if p, has := m.Has(r.Pod.UID, r.Volume.Name); has {
		m.Tend(r.Pod, r.Volume.Name)
		return p, nil
	}
	p, err := m.publish(ctx, r)
	if err != nil {
		m.wait(r.Pod.UID)
		return p, err
	}
	m.Tend(r.Pod, r.Volume.Name)
	return p, nil
}

func (m *Manager) publish(ctx context.Context, r Request) (Published, error) {
	d, err := m.connected(ctx, r.driver())
	if err != nil {
		return Published{}, err
	}
	v, err := m.terms(ctx, r)
	if err != nil {
		return Published{}, err
	}
	uid, name := r.Pod.UID, r.Volume.Name
	u, err := m.begin(ctx, r, &v, d)
	if err != nil {
		return Published{}, err
	}
	var attachment map[string]string
	if v.Attach {
		if attachment, err = m.attachment(ctx, &v); err != nil {
			return Published{}, err
		}
	}
	release, err := m.turns.take(ctx, u.unique())
	if err != nil {
		return Published{}, err
	}
	defer release()
	call := &call{m: m, d: d, v: &v, pod: r.Pod, attachment: attachment}
	if d.ability.Stage && !v.Inline {
		if err := m.stage(ctx, call, name, &u); err != nil {
			return Published{}, err
		}
	}
	u.Target = m.paths.Target(&v, string(uid))
	if err := m.keep(uid, name, u); err != nil {
		return Published{}, err
	}
	if err := call.publish(ctx, &u); err != nil {
		return Published{}, err
	}
	u.Published = true
	if err := m.keep(uid, name, u); err != nil {
		return Published{}, err
	}
	return Published{Path: u.Target, Block: u.Block, Group: u.Group}, nil
}

// terms reads what the volume is on what terms.
func (m *Manager) terms(ctx context.Context, r Request) (terms.Volume, error) {
	object, err := m.object(ctx, r.driver())
	if err != nil {
		return terms.Volume{}, err
	}
	if r.PV != nil {
		source := r.Volume.PersistentVolumeClaim
		return terms.Persistent(r.PV, object, source != nil && source.ReadOnly)
	}
	return terms.Inline(r.Pod, r.Volume, object)
}

// object is a driver's CSIDriver; nil: there is none.
func (m *Manager) object(ctx context.Context, driver string) (*storagev1.CSIDriver, error) {
	object, err := m.cfg.Client.StorageV1().CSIDrivers().Get(ctx, driver, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("CSIDriver %s: %w", driver, err)
	}
	return object, nil
}

// begin writes down that the volume is going to be asked for. What was asked for before stays: of another driver or
// volume, or when the machine ran before, it is taken back first.
func (m *Manager) begin(ctx context.Context, r Request, v *terms.Volume, d *driver) (use, error) {
	u := use{Driver: v.Driver, Handle: v.Handle, Name: v.Name, Claim: podspec.ClaimName(r.Pod, r.Volume),
		Boot: m.cfg.Boot, Attach: v.Attach, Block: v.Block, ReadOnly: v.ReadOnly, Republish: v.Republish,
		Group: v.OwnsGroup(d.ability.Group)}
	if before, has := m.use(r.Pod.UID, r.Volume.Name); has {
		if before.same(&u) && before.Boot == u.Boot && !before.Gone {
			u.Staging, u.Staged, u.Target = before.Staging, before.Staged, before.Target
		} else if err := m.unpublish(ctx, r.Pod.UID, r.Volume.Name); err != nil {
			return use{}, err
		}
	}
	return u, m.keep(r.Pod.UID, r.Volume.Name, u)
}

// stage has the driver stage the volume, unless it has for another pod. It has the volume's turn.
func (m *Manager) stage(ctx context.Context, c *call, volume string, u *use) error {
	if u.Staged {
		return nil
	}
	_, done := m.stagedBy(c.pod.UID, volume, u)
	u.Staging, u.Staged = m.paths.Staging(c.v), done
	if err := m.keep(c.pod.UID, volume, *u); err != nil || done {
		return err
	}
	if err := c.stage(ctx, u); err != nil {
		return err
	}
	u.Staged = true
	return m.keep(c.pod.UID, volume, *u)
}

// call asks a driver for one volume.
type call struct {
	m          *Manager
	d          *driver
	v          *terms.Volume
	pod        *corev1.Pod
	attachment map[string]string
}

func (c *call) stage(ctx context.Context, u *use) error {
	if err := os.MkdirAll(u.Staging, 0o750); err != nil {
		return err
	}
	secrets, err := c.m.secrets(ctx, c.v.StageSecret)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = c.d.node.NodeStageVolume(ctx, &spec.NodeStageVolumeRequest{VolumeId: c.v.Handle,
		PublishContext: c.attachment, StagingTargetPath: u.Staging, Secrets: secrets, VolumeContext: c.v.Attributes,
		VolumeCapability: c.v.Capability(c.d.ability, terms.Group(c.pod, c.d.ability))})
	return driverFault(c.d.name, "NodeStageVolume", err)
}

func (c *call) publish(ctx context.Context, u *use) error {
	if err := os.MkdirAll(filepath.Dir(u.Target), 0o750); err != nil {
		return err
	}
	secrets, err := c.m.secrets(ctx, c.v.PublishSecret)
	if err != nil {
		return err
	}
	about := c.v.Context(c.pod)
	tokens, err := c.m.tokens(ctx, c.v, c.pod)
	if err != nil {
		return err
	}
	if tokens != "" && c.v.TokensInSecrets {
		secrets = maps.Clone(secrets)
		if secrets == nil {
			secrets = map[string]string{}
		}
		secrets[terms.TokensKey] = tokens
	} else if tokens != "" {
		about[terms.TokensKey] = tokens
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = c.d.node.NodePublishVolume(ctx, &spec.NodePublishVolumeRequest{VolumeId: c.v.Handle,
		PublishContext: c.attachment, StagingTargetPath: u.Staging, TargetPath: u.Target, Readonly: c.v.ReadOnly,
		VolumeCapability: c.v.Capability(c.d.ability, terms.Group(c.pod, c.d.ability)), Secrets: secrets,
		VolumeContext: about})
	return driverFault(c.d.name, "NodePublishVolume", err)
}
