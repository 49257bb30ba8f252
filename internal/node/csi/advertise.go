// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
)

// Advertise has the node's labels, its annotations and its CSINode show the drivers that have registered. A node that
// never had one is not touched.
func (m *Manager) Advertise(ctx context.Context) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.mu.Lock()
	var here []terms.Identity
	for _, name := range slices.Sorted(maps.Keys(m.drivers)) {
		here = append(here, m.drivers[name].identity)
	}
	gone := slices.Sorted(maps.Keys(m.gone))
	m.mu.Unlock()
	if len(here)+len(gone) == 0 {
		return nil
	}
	node, err := m.cfg.Client.CoreV1().Nodes().Get(ctx, m.cfg.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := m.markNode(ctx, node, here, gone); err != nil {
		return err
	}
	if err := m.writeCSINode(ctx, node, here, gone); err != nil {
		return fmt.Errorf("CSINode %s: %w", node.Name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range gone {
		delete(m.gone, name)
	}
	return nil
}

func (m *Manager) markNode(ctx context.Context, node *corev1.Node, here []terms.Identity, gone []string) error {
	labels, annotations, err := terms.NodeMeta(node, here, gone)
	if err != nil || len(labels)+len(annotations) == 0 {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = m.cfg.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// writeCSINode makes the CSINode with the first driver.
func (m *Manager) writeCSINode(ctx context.Context, node *corev1.Node, here []terms.Identity, gone []string) error {
	nodes := m.cfg.Client.StorageV1().CSINodes()
	for {
		have, err := nodes.Get(ctx, node.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			if len(here) == 0 {
				return nil
			}
			have, err = nodes.Create(ctx, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name,
					UID: node.UID}}}}, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
		drivers, changed, again := terms.MergeDrivers(have.Spec.Drivers, here, gone)
		if !changed {
			return nil
		}
		have = have.DeepCopy()
		have.Spec.Drivers = drivers
		if have.Spec.Drivers == nil {
			have.Spec.Drivers = []storagev1.CSINodeDriver{}
		}
		_, err = nodes.Update(ctx, have, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			return err
		}
		if err == nil && !again {
			return nil
		}
	}
}
