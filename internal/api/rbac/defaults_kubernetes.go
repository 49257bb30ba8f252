// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// KubernetesControllers are the controllers that are Kubernetes' own. Each is the user ControllerUser(name), with the
// rights that Kubernetes gives it.
func KubernetesControllers() []string {
	return []string{
		"attachdetach-controller",
		"cronjob-controller",
		"daemon-set-controller",
		"deployment-controller",
		"disruption-controller",
		"endpoint-controller",
		"endpointslice-controller",
		"ephemeral-volume-controller",
		"endpointslicemirroring-controller",
		"generic-garbage-collector",
		"horizontal-pod-autoscaler",
		"job-controller",
		"persistent-volume-binder",
		"pv-protection-controller",
		"pvc-protection-controller",
		"replicaset-controller",
		"replication-controller",
		"statefulset-controller",
		"ttl-after-finished-controller",
	}
}

// ControllerUser is the user that a controller is, and the name of its role.
func ControllerUser(name string) string { return controllerPrefix + name }

func kubernetesRoles() (roles []rbacv1.ClusterRole) {
	for _, role := range bootstrappolicy.ControllerRoles() {
		if slices.ContainsFunc(KubernetesControllers(), func(n string) bool { return ControllerUser(n) == role.Name }) {
			roles = append(roles, clusterRole(role.Name, role.DeepCopy().Rules...))
		}
	}
	return roles
}
