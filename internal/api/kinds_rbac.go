// SPDX-License-Identifier: Apache-2.0

package api

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wherryproject/wherry/internal/api/validation"
)

func rbacKinds() []*kind {
	gv := rbacv1.SchemeGroupVersion
	return []*kind{
		{gv: gv, name: "Role", plural: "roles", singular: "role", namespaced: true,
			object: of[rbacv1.Role], list: of[rbacv1.RoleList],
			rules: typed[*rbacv1.Role]{
				validate: validation.ValidateRole, validateUpdate: validation.ValidateRoleUpdate, createOnUpdate: true,
			}.rules()},
		{gv: gv, name: "ClusterRole", plural: "clusterroles", singular: "clusterrole",
			object: of[rbacv1.ClusterRole], list: of[rbacv1.ClusterRoleList],
			rules: typed[*rbacv1.ClusterRole]{
				validate: validation.ValidateClusterRole, validateUpdate: validation.ValidateClusterRoleUpdate, createOnUpdate: true,
			}.rules()},
		{gv: gv, name: "RoleBinding", plural: "rolebindings", singular: "rolebinding", namespaced: true,
			object: of[rbacv1.RoleBinding], list: of[rbacv1.RoleBindingList],
			rules: typed[*rbacv1.RoleBinding]{
				validate: validation.ValidateRoleBinding, validateUpdate: validation.ValidateRoleBindingUpdate, createOnUpdate: true,
			}.rules()},
		{gv: gv, name: "ClusterRoleBinding", plural: "clusterrolebindings", singular: "clusterrolebinding",
			object: of[rbacv1.ClusterRoleBinding], list: of[rbacv1.ClusterRoleBindingList],
			rules: typed[*rbacv1.ClusterRoleBinding]{
				validate: validation.ValidateClusterRoleBinding, validateUpdate: validation.ValidateClusterRoleBindingUpdate, createOnUpdate: true,
			}.rules()},
	}
}
