// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation"
)

func rbacKinds() []*registry.Kind {
	gv := rbacv1.SchemeGroupVersion
	return []*registry.Kind{
		{GV: gv, Name: "Role", Plural: "roles", Singular: "role", Namespaced: true,
			Object: registry.New[rbacv1.Role], List: registry.New[rbacv1.RoleList],
			Rules: registry.Typed[*rbacv1.Role]{
				Validate: validation.ValidateRole, ValidateUpdate: validation.ValidateRoleUpdate, CreateOnUpdate: true,
			}.Rules()},
		{GV: gv, Name: "ClusterRole", Plural: "clusterroles", Singular: "clusterrole",
			Object: registry.New[rbacv1.ClusterRole], List: registry.New[rbacv1.ClusterRoleList],
			Rules: registry.Typed[*rbacv1.ClusterRole]{
				Validate: validation.ValidateClusterRole, ValidateUpdate: validation.ValidateClusterRoleUpdate,
				CreateOnUpdate: true,
			}.Rules()},
		{GV: gv, Name: "RoleBinding", Plural: "rolebindings", Singular: "rolebinding", Namespaced: true,
			Object: registry.New[rbacv1.RoleBinding], List: registry.New[rbacv1.RoleBindingList],
			Rules: registry.Typed[*rbacv1.RoleBinding]{
				Validate: validation.ValidateRoleBinding, ValidateUpdate: validation.ValidateRoleBindingUpdate,
				CreateOnUpdate: true,
			}.Rules()},
		{GV: gv, Name: "ClusterRoleBinding", Plural: "clusterrolebindings", Singular: "clusterrolebinding",
			Object: registry.New[rbacv1.ClusterRoleBinding], List: registry.New[rbacv1.ClusterRoleBindingList],
			Rules: registry.Typed[*rbacv1.ClusterRoleBinding]{
				Validate:       validation.ValidateClusterRoleBinding,
				ValidateUpdate: validation.ValidateClusterRoleBindingUpdate, CreateOnUpdate: true,
			}.Rules()},
	}
}
