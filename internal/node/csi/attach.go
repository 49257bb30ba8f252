// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
)

// attachment waits a moment until a volume is attached to the node, and returns what its driver needs to know about
// that. That the volume is in use is reported first: the attach-detach controller writes to the node's status before it
// detaches one, and then looks whether it is in use.
func (m *Manager) attachment(ctx context.Context, v *terms.Volume) (map[string]string, error) {
	over := time.NewTimer(3 * m.cfg.Patience)
	defer over.Stop()
	name := terms.AttachmentName(v.Handle, v.Driver, m.cfg.NodeName)
	for {
		m.mu.Lock()
		news := m.news
		m.mu.Unlock()
		node, err := m.cfg.InUse(ctx)
		if err != nil {
			return nil, fmt.Errorf("telling that the volume is in use: %w", err)
		}
		if isAttached(node, terms.UniqueName(v.Driver, v.Handle)) {
			return m.metadata(ctx, name)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over.C:
			return nil, fmt.Errorf("volume %s is not attached to node %s yet: its VolumeAttachment %s is for the "+
				"attacher of driver %s (kubectl describe volumeattachment %s); a driver that attaches nothing needs a "+
				"CSIDriver with attachRequired: false", v.Name, m.cfg.NodeName, name, v.Driver, name)
		case <-news:
		}
	}
}

func isAttached(node *corev1.Node, name corev1.UniqueVolumeName) bool {
	return slices.ContainsFunc(node.Status.VolumesAttached, func(a corev1.AttachedVolume) bool {
		return a.Name == name
	})
}

// metadata is what the attacher has left for the driver.
func (m *Manager) metadata(ctx context.Context, name string) (map[string]string, error) {
	va, err := m.cfg.Client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("VolumeAttachment %s is gone, though the node's status has its volume as attached", name)
	case err != nil:
		return nil, fmt.Errorf("VolumeAttachment %s: %w", name, err)
	case !va.Status.Attached:
		return nil, fmt.Errorf("VolumeAttachment %s says that its volume is not attached", name)
	}
	return va.Status.AttachmentMetadata, nil
}
