// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// nodePatch is the strategic merge patch that makes of the node as it was read the node as this agent wants it: its
// labels, annotations and its status, nothing else. The whole object is never sent back: taints and conditions of
// others may be newer than what was read, and Kubernetes refuses a node that would change a taint.
func nodePatch(have, want *corev1.Node) ([]byte, error) {
	was := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: have.Labels, Annotations: have.Annotations},
		Status: have.Status}
	now := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: want.Labels, Annotations: want.Annotations},
		Status: want.Status}
	// Addresses are merged by their types, of which a node has several with two addresses: they are replaced.
	readdressed := !slices.Equal(was.Status.Addresses, now.Status.Addresses)
	addresses := now.Status.Addresses
	now.Status.Addresses = was.Status.Addresses
	before, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
	if err != nil || !readdressed {
		return patch, err
	}
	return replaceAddresses(patch, addresses)
}

func replaceAddresses(patch []byte, addresses []corev1.NodeAddress) ([]byte, error) {
	var all map[string]any
	if err := json.Unmarshal(patch, &all); err != nil {
		return nil, fmt.Errorf("patch of the node: %w", err)
	}
	status, ok := all["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		all["status"] = status
	}
	list := []any{map[string]string{"$patch": "replace"}}
	for _, a := range addresses {
		list = append(list, a)
	}
	status["addresses"] = list
	return json.Marshal(all)
}
