// SPDX-License-Identifier: Apache-2.0

package table

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// roleLabelPrefix and roleLabel are the two ways in which labels give a node its roles.
	roleLabelPrefix = "node-role.kubernetes.io/"
	roleLabel       = "kubernetes.io/role"
)

func nodePrinter() Printer {
	info, status := corev1.NodeSystemInfo{}.SwaggerDoc(), corev1.NodeStatus{}.SwaggerDoc()
	return Printer{
		Columns: columns(
			nameColumn(),
			text("Status", "The status of the node"),
			text("Roles", "The roles of the node"),
			ageColumn(),
			text("Version", info["kubeletVersion"]),
			wideText("Internal-IP", status["addresses"]),
			wideText("External-IP", status["addresses"]),
			wideText("OS-Image", info["osImage"]),
			wideText("Kernel-Version", info["kernelVersion"]),
			wideText("Container-Runtime", info["containerRuntimeVersion"]),
		),
		Row: rowOf(nodeRow),
	}
}

func nodeRow(node *corev1.Node, now time.Time) []any {
	info := node.Status.NodeInfo
	return []any{
		node.Name,
		nodeStatus(node),
		nodeRoles(node),
		age(node.CreationTimestamp, now),
		info.KubeletVersion,
		nodeAddress(node, corev1.NodeInternalIP),
		nodeAddress(node, corev1.NodeExternalIP),
		orElse(info.OSImage, unknown),
		orElse(info.KernelVersion, unknown),
		orElse(info.ContainerRuntimeVersion, unknown),
	}
}

func nodeStatus(node *corev1.Node) string {
	status := "Unknown"
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		status = "NotReady"
		if c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(node *corev1.Node) string {
	var roles []string
	for key, value := range node.Labels {
		if role, ok := strings.CutPrefix(key, roleLabelPrefix); ok && role != "" {
			roles = append(roles, role)
		} else if key == roleLabel && value != "" {
			roles = append(roles, value)
		}
	}
	slices.Sort(roles)
	return orElse(strings.Join(slices.Compact(roles), ","), none)
}

func nodeAddress(node *corev1.Node, t corev1.NodeAddressType) string {
	for _, a := range node.Status.Addresses {
		if a.Type == t {
			return a.Address
		}
	}
	return none
}
